import {
  ServiceError,
  WorkflowNotFoundError,
  WorkflowUpdateFailedError,
  WorkflowUpdateRPCTimeoutOrCancelledError,
} from '@temporalio/client';
import { ApplicationFailure, CancelledFailure, NamespaceNotFoundError } from '@temporalio/common';
import { whatToDo } from '../../api/order-calls';

/** As grpc-js throws it: a plain Error with a code, details and metadata. */
function grpcError(code: number): Error {
  return Object.assign(new Error(`${code}`), { code, details: '', metadata: {} });
}

const failed = (cause: Error) => new WorkflowUpdateFailedError('update failed', cause);

test.each([
  [
    'the run ended after it accepted',
    failed(ApplicationFailure.create({ type: 'AcceptedUpdateCompletedWorkflow' })),
    'repeat',
  ],
  ['the run was cancelled', failed(new CancelledFailure('cancelled')), 'repeat'],
  ['the run is over', new WorkflowNotFoundError('over', 'order:m:o', undefined), 'repeat'],
  ['a race with a closing task', grpcError(9), 'repeat'],
  ['an aborted operation', grpcError(10), 'repeat'],
  ['no answer in time', new WorkflowUpdateRPCTimeoutOrCancelledError('late'), 'unknown'],
  ['a deadline', new ServiceError('x', { cause: grpcError(4) }), 'unknown'],
  ['an exhausted server', new ServiceError('x', { cause: grpcError(8) }), 'unknown'],
  ['a server that is away', new ServiceError('x', { cause: grpcError(14) }), 'unknown'],
  ['our own abort', new ServiceError('x', { cause: grpcError(1) }), 'unknown'],
  ['an aborted call', new ServiceError('x', { cause: grpcError(10) }), 'repeat'],
  ['attributes nobody registered', new ServiceError('x', { cause: grpcError(3) }), 'unknown'],
  ['no such namespace', new NamespaceNotFoundError('x'), 'unknown'],
  ['a caller without rights', new ServiceError('x', { cause: grpcError(7) }), 'unknown'],
  ['a call the server does not know', new ServiceError('x', { cause: grpcError(12) }), 'throw'],
  ['a defect in the handler', failed(ApplicationFailure.create({ type: 'Defect' })), 'throw'],
  ['a defect of ours', new TypeError('x'), 'throw'],
])('%s', (_name, error, action) => {
  expect(whatToDo(error)).toBe(action);
});
