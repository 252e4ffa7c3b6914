import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { HttpResult } from '../http';
import type { MemoryResult } from '../memory';
import { rigLine } from '../results';
import type { Rig, Source } from '../results';
import type { SagaResult } from '../saga';
import type { SoakResult } from '../soak';

/** A strategy as `npm run bench -- strategies` tells of it: what the report reads of it. */
export interface StrategyFigures {
  name: string;
  orders_per_s?: number;
  p50_ms?: number;
  p95_ms?: number;
  p99_ms?: number;
  errors?: number;
  double_effects?: number;
  commits_per_order?: number;
  redis_ops_per_order?: number;
  /** Why there are no figures. */
  not_run?: string;
  faults: Partial<Record<string, FaultFigures>>;
  /** Not a fault: a person with two pages of one order. */
  two_pages?: FaultFigures;
}

export interface FaultFigures {
  double_effects?: number;
  errors?: number;
  charged_not_booked?: number;
  not_run?: string;
}

export interface StrategiesFigures {
  orders: number;
  clients: number;
  floor: {
    inserts_per_s?: number;
    at_equal_commits?: { commits_per_order: number; orders_per_s: number };
    attempt_key_ratio?: number;
  };
  strategies: StrategyFigures[];
}

/** A kept result: its figures, and where they come from. */
export type Kept<Result> = Result & Source & { rig: Rig; full_size: boolean };

/** The last results there are; what was never measured is undefined. */
export interface Results {
  strategies?: Kept<StrategiesFigures>;
  http?: Kept<HttpResult>;
  saga?: Kept<SagaResult>;
  sagaPostgres?: Kept<SagaResult>;
  memory?: Kept<MemoryResult>;
  soak?: Kept<SoakResult>;
}

/** @throws SyntaxError naming the file when one is no JSON */
export function readResults(folder: string): Results {
  const read = <Result>(name: string): Result | undefined => {
    const file = join(folder, `${name}.json`);
    if (!existsSync(file)) return undefined;
    try {
      return JSON.parse(readFileSync(file, 'utf8')) as Result;
    } catch (error) {
      throw new SyntaxError(`${file} is no JSON`, { cause: error });
    }
  };
  return {
    strategies: read('strategies'),
    http: read('http'),
    saga: read('saga'),
    sagaPostgres: read('saga-postgres'),
    memory: read('memory'),
    soak: read('soak'),
  };
}

/** The line that goes under every table: machine, commit, date, and whether it is the promised size. */
export function provenance({ rig, commit, dirty, date, full_size: isFull }: Kept<object>): string {
  const size = isFull ? '' : ' **A smaller run than the figures are promised for.**';
  return `<sub>${rigLine(rig, { commit, dirty, date })}</sub>${size}`;
}
