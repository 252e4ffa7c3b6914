import { testsOfStopping } from './stopping';

describe('a worker stopped with SIGTERM while everything hangs', () => {
  testsOfStopping({ signal: 'SIGTERM' });
});
