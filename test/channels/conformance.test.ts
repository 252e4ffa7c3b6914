import { describeConformance } from '../../channels/conformance';
import { startMockHarness } from './mock-harness';

describeConformance('mock-a', { start: () => startMockHarness('mock-a') });
describeConformance('mock-b', { start: () => startMockHarness('mock-b') });
