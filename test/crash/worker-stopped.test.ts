import { testsOfStopping } from './stopping';

describe('a worker stopped with SIGTERM that lets what is under way finish', () => {
  testsOfStopping({ signal: 'SIGTERM', holdMs: 1_500 });
});
