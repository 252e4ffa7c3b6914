import { createActivities } from '../../activities';
import type { ActivityDeps } from '../../activities';
import * as messages from '../../workflows/messages';
import * as workflows from '../../workflows';
import type { WorkflowHistory } from '../../scripts/histories/history-text';

export type Kind = 'activity' | 'workflow' | 'signal' | 'update';
/** `activity submitPayment`, `signal nudge`, … */
export type Name = `${Kind} ${string}`;

type Event = NonNullable<WorkflowHistory['events']>[number];

/** Everything the present build has under a name that a history may hold. */
export function namesOfThisBuild(): Set<Name> {
  // Bound to nothing: only the names are looked at.
  const activities = createActivities({} as ActivityDeps);
  const kinds = { signal: 'signal', update: 'update' } as const;
  return new Set<Name>([
    ...Object.keys(activities).map((name): Name => `activity ${name}`),
    ...Object.keys(workflows).map((name): Name => `workflow ${name}`),
    ...Object.values(messages).flatMap((message): Name[] =>
      message.type === 'query' ? [] : [`${kinds[message.type]} ${message.name}`],
    ),
  ]);
}

/** Every name that a history holds; local activities, which are markers in it, among them. */
export function namesIn(history: WorkflowHistory): Set<Name> {
  return new Set((history.events ?? []).flatMap(namesOf));
}

function namesOf(event: Event): Name[] {
  const found: [Kind, string | null | undefined][] = [
    ['activity', event.activityTaskScheduledEventAttributes?.activityType?.name],
    ['activity', localActivityOf(event)],
    ['workflow', event.workflowExecutionStartedEventAttributes?.workflowType?.name],
    ['workflow', event.startChildWorkflowExecutionInitiatedEventAttributes?.workflowType?.name],
    ['signal', event.workflowExecutionSignaledEventAttributes?.signalName],
    ['signal', event.signalExternalWorkflowExecutionInitiatedEventAttributes?.signalName],
    ['update', event.workflowExecutionUpdateAcceptedEventAttributes?.acceptedRequest?.input?.name],
  ];
  return found.flatMap(([kind, name]): Name[] => (name ? [`${kind} ${name}`] : []));
}

function localActivityOf(event: Event): string | undefined {
  const marker = event.markerRecordedEventAttributes;
  if (marker?.markerName !== 'core_local_activity') return undefined;
  const data = marker.details?.['data']?.payloads?.[0]?.data;
  if (!data) return undefined;
  return (JSON.parse(Buffer.from(data).toString()) as { activity_type: string }).activity_type;
}
