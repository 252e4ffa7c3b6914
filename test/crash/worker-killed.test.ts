import { testsOfStopping } from './stopping';

describe('a worker killed with SIGKILL', () => {
  testsOfStopping({ signal: 'SIGKILL' });
});
