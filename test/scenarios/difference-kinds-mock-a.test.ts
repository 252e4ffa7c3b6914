import { testsOfKinds } from './difference-kinds';

describe('one difference of each kind in a bill of mock-a', () => testsOfKinds('mock-a'));
