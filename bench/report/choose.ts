import { NOT_MEASURED } from './markdown';
import type { Results, StrategyFigures } from './results-read';
import { doubleEffectsOf, STRATEGIES } from './strategies';

/**
 * Which strategies each size of shop may consider, the simplest to run first: what a size can afford is
 * judgement, whether a strategy double-paid is measured.
 */
const SIZES: readonly { size: string; wants: string; candidates: readonly string[] }[] = [
  {
    size: 'Small shop',
    wants:
      'one database, nobody on call, some orders a minute. What is missing after a crash can be looked up by hand, so the ' +
      'least machinery wins.',
    candidates: ['unique_order_number', 'stored_answers', 'attempt_key'],
  },
  {
    size: 'Growing shop',
    wants:
      'several API processes, clients that repeat by themselves, some orders a second. A repeat should get the answer of ' +
      'the first, and nobody should have to look up lost answers every day.',
    candidates: ['stored_answers', 'attempt_key'],
  },
  {
    size: 'Platform',
    wants:
      'many merchants and channels, callbacks out of order, refunds, reconciliation. An outcome that is unknown must be ' +
      'carried on by itself until the channel has said how it ended.',
    candidates: ['attempt_key'],
  },
];

/** The page "which should I choose": from the figures, and in words what no figure tells. */
export function chooseSection(results: Results): string {
  return [
    '## Which should I choose?',
    'The first of the candidates that charged nobody twice, in the run or under any fault. A strategy is ' +
      'not better for being faster than you need: the rates are those of the machine under the tables below.',
    ...SIZES.map(({ size, wants, candidates }) =>
      [`### ${size}`, `Has ${wants}`, choice(results, candidates, size)].join('\n\n'),
    ),
    '### What each cannot do',
    STRATEGIES.map(({ title, cannot }) => `- **${title}** cannot ${cannot}`).join('\n'),
    'Redis makes any of these faster to refuse a repeat. It decides nothing: what must not happen twice must be ' +
      'refused by the database that holds the money.',
  ].join('\n\n');
}

function choice(results: Results, candidates: readonly string[], size: string): string {
  const { strategies: kept } = results;
  const titleOf = (name: string) => STRATEGIES.find((one) => one.name === name)?.title ?? name;
  const named = candidates.map(titleOf).join(', then ');
  if (!kept) return `Candidates: ${named}. Their figures: ${NOT_MEASURED}.`;
  const measured = candidates.flatMap((name) => {
    const found = kept.strategies.find((one) => one.name === name);
    const doubled = found && doubleEffectsOf(found);
    return found && doubled !== undefined ? [{ name, found, doubled }] : [];
  });
  const chosen = measured.find(({ doubled }) => doubled === 0);
  const passedOver = measured
    .slice(0, chosen ? measured.indexOf(chosen) : undefined)
    .map(({ name, doubled }) => `${titleOf(name)} charged ${doubled} orders more than once`);
  return [
    ...(chosen
      ? [`**${titleOf(chosen.name)}**: ${figures(chosen.found)}.`]
      : [`None of ${named} can be recommended from the figures.`]),
    ...(passedOver.length > 0 ? [`Passed over: ${passedOver.join('; ')}.`] : []),
    ...(size === 'Platform' ? [workflows(results)] : []),
  ].join(' ');
}

function figures(one: StrategyFigures): string {
  return [
    `${Math.round(one.orders_per_s ?? 0)} orders per second`,
    ...(one.p99_ms === undefined ? [] : [`99 of 100 within ${Math.round(one.p99_ms)} ms`]),
    'no order charged twice under any fault that was tried',
  ].join(', ');
}

/** What carrying orders by workflow adds: the price of nothing being forgotten. */
function workflows({ saga, sagaPostgres }: Results): string {
  const told = [saga, sagaPostgres].flatMap((kept) =>
    kept
      ? [
          `${kept.knee.per_second} orders per second with Temporal ${kept.temporal} ` +
            `(until paid: p50 ${Math.round(kept.at_70_percent.paid.p50_ms)} ms at 70 % of that)`,
        ]
      : [],
  );
  return `Carried by a workflow from order to notification, it is ${told.length > 0 ? told.join('; ') : NOT_MEASURED}.`;
}
