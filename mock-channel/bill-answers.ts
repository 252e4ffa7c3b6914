import { createHash } from 'node:crypto';
import { statedTotals } from './bill-text';
import type { Bills } from './bills';
import type { BillFile } from './bills';
import type { BillFileDefects, BillKey, BillNotReady } from './bill-types';
import type { FaultAction } from './control-types';
import type { Account, BillCall, DialectFormat } from './dialect';

/** What a bill's question is answered: words, or bytes of a file. */
export type BillReply =
  | { kind: 'refusal'; code: string; message: string; status: number; headers: Headers }
  | { kind: 'content'; content: Record<string, unknown> }
  | { kind: 'file'; headers: Headers; path: string | null; bytes: number; sendBytes: number };

type Headers = Record<string, string>;

/** Stands for a file of zero bytes among the paths of files. */
const ZERO = '/v3/bill/files/zero';
const SHA256_OF_NOTHING = createHash('sha256').digest('hex');

/** Answers one dialect's questions for trade bills, and hands out their files. */
export class BillAnswers {
  private readonly files = new Map<string, { file: BillFile; key: BillKey }>();

  constructor(
    private readonly format: DialectFormat,
    private readonly account: Account,
    private readonly bills: Bills,
  ) {}

  async answer(call: BillCall): Promise<BillReply> {
    return call.operation === 'bill' ? this.question(call.day) : this.download(call.path);
  }

  private async question(day: string): Promise<BillReply> {
    const key = { dialect: this.format.dialect, day };
    const notReady = this.bills.askNotReady(key);
    if (notReady && !notReady.zeroBytes) return this.notReady(notReady);
    const defects = this.bills.plan(key).file;
    if (notReady) {
      const head = { day, fileName: `${day}.csv`, sha256: SHA256_OF_NOTHING, totals: null };
      return this.head({ ...head, charset: 'utf-8', path: this.own(ZERO) }, key, null);
    }
    const file = await this.bills.make(key);
    const path = `/v3/bill/files/${file.sha256.slice(0, 32)}`;
    this.files.set(path, { file, key });
    const charset = file.charset === 'utf-16le' ? 'utf-8' : file.charset;
    const hasTotals = defects.totals !== false && !defects.headerOnly;
    const head = {
      day: defects.sayDay ?? day,
      fileName: file.fileName,
      sha256: defects.wrongHash ? SHA256_OF_NOTHING : file.sha256,
      totals: hasTotals ? statedTotals(file.totals, defects) : null,
      charset: defects.declaredCharset ?? charset,
      path: this.own(path),
    };
    return this.head(head, key, file);
  }

  private download(pathAndQuery: string): BillReply {
    const path = pathAndQuery.split('?')[0] ?? '';
    if (path === ZERO) return fileReply({ 'content-type': 'application/gzip' }, null, undefined);
    const known = this.files.get(path);
    if (!known) return this.notReady({});
    const cutOff = this.bills.takeCutOff(known.key);
    return fileReply({ 'content-type': 'application/gzip' }, known.file, cutOff);
  }

  private head(
    head: Parameters<DialectFormat['billAnswer']>[1],
    key: BillKey,
    file: BillFile | null,
  ): BillReply {
    const answer = this.format.billAnswer(this.account, head);
    if ('content' in answer) return { kind: 'content', content: answer.content };
    return fileReply(answer.headers, file, file ? this.bills.takeCutOff(key) : undefined);
  }

  private own(path: string): string {
    return `${path}?mchid=${encodeURIComponent(this.account.accountId)}`;
  }

  private notReady(how: BillNotReady): BillReply {
    const usual = this.format.dialect === 'mock-a' ? 'BILL_NOT_EXIST' : 'NO_STATEMENT_EXIST';
    const { retryAfterSeconds } = how;
    return {
      kind: 'refusal',
      code: how.code ?? usual,
      message: how.message ?? 'the bill does not exist',
      status: how.status ?? 404,
      headers: retryAfterSeconds === undefined ? {} : { 'retry-after': String(retryAfterSeconds) },
    };
  }
}

/** Faults that a rule asks for of a bill's question or download; the others do not concern bills. */
export function billFault(fault: FaultAction | undefined): 'drop' | 'http' | 'html' | undefined {
  const answer = fault?.answer;
  return answer === 'drop' || answer === 'http' || answer === 'html' ? answer : undefined;
}

type CutOff = NonNullable<BillFileDefects['cutOff']>;

function fileReply(
  headers: Headers,
  file: BillFile | null,
  cutOff: CutOff | undefined,
): BillReply & { kind: 'file' } {
  const whole = file?.bytes ?? 0;
  const sendBytes = cutOff ? Math.floor(whole * cutOff.share) : whole;
  const bytes = cutOff?.how === 'whole' ? sendBytes : whole;
  return { kind: 'file', headers, path: file?.path ?? null, bytes, sendBytes };
}
