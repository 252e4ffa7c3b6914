import type { Form } from './frame';

/** What a person wrote, not what the page added. */
const WRITTEN: readonly [string, string][] = [
  ['reason', 'Reason'],
  ['evidence', 'Evidence'],
  ['amount', 'Amount'],
  ['name', 'Name'],
];

/** So that nobody has to remember what they wrote when a form could not be taken. */
export function Written({ form }: { form: Form | undefined }) {
  const written = WRITTEN.filter(([name]) => form?.[name]);
  if (written.length === 0) return null;
  return (
    <section aria-labelledby="written">
      <h2 id="written">You had written</h2>
      <dl class="facts">
        {written.map(([name, label]) => (
          <div>
            <dt>{label}</dt>
            <dd>
              <bdi>{form?.[name]}</bdi>
            </dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

/** The outcome is not known: the same form once more is the same act, under the same number. */
export function SendAgain({ action, form }: { action: string; form: Form }) {
  return (
    <>
      <Written form={form} />
      <form method="post" action={action}>
        {Object.entries(form).map(([name, value]) => (
          <input type="hidden" name={name} value={value} />
        ))}
        <button type="submit" class="button">
          Send the same again
        </button>
      </form>
    </>
  );
}
