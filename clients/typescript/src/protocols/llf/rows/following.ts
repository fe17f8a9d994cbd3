/** One party at one round of split rows: centroids follow from the totals of updates. */

import type {
  UpdatesClosed,
  UpdatesGather,
  UpdatesUpdate,
} from "../../../generated/llf.ts";
import { equaliseCoordinates } from "../../../numerics/coincidence.ts";
import type { Points } from "../../../numerics/points.ts";
import { readTotal, share, type Sum } from "../../../secrecy/sums.ts";
import type { PartyContext } from "../../../session/contract.ts";
import { groupRows, sumOf } from "../../../stages/pooled.ts";
import { sumMember } from "../../../stages/secrets.ts";
import { words, type Bytes, type Ints, type Words } from "../../../wire/arrays.ts";
import { refuse } from "../../../wire/problems.ts";
import { isFuzzy, leastRowsMoved, type LlfParams } from "../params.ts";
import { Scaler, startOf } from "../scaler.ts";
import { drawNudges, isAtRest, move } from "../centroids.ts";
import { countLabels, type ClusterSums } from "../cluster-sums.ts";
import { AroundEncoding, SumsEncoding, type Around } from "./encodings.ts";
import {
  checkNoFarther,
  checkOwn,
  checkSameRows,
  slackOf,
  type Slack,
} from "./steadiness.ts";

/** The fields of every task and the result that describe updates. */
type Totals = Pick<UpdatesUpdate, "updates" | "cohorts" | "totals">;
type LabelTotals = Totals & Pick<UpdatesGather, "closed_in" | "closed_by" | "closing">;
type FinalTotals = Omit<UpdatesClosed, "kind">;

/** The centroids after an update; `total`: that from which they come, over whose rows. */
export interface Known {
  readonly number: number;
  readonly centroids: Points;
  readonly moved: number | null;
  readonly total?: MemberSums;
}

export interface MemberSums extends ClusterSums {
  readonly members: readonly string[];
}

/** The last update to which this party added its share, and what it counts there. */
export interface OwnShare {
  readonly asked: number;
  readonly counts: readonly number[];
}

/** Rows of each final cluster, and their means. */
export interface FinalMeans {
  readonly counts: readonly number[];
  readonly means: Points;
}

export const KNOWN = "centroids";
export const OWN_SHARE = "own-share";
export const LABELS = "final-labels";
export const MEANS = "final-means";
export class RowsRound {
  readonly scaler: Scaler;
  readonly updates: SumsEncoding;
  readonly labels: SumsEncoding;
  /** How many rows all parties have together. */
  readonly rows: number;

  constructor(
    readonly context: PartyContext,
    readonly params: LlfParams,
  ) {
    this.scaler = Scaler.of(context, params);
    this.rows = groupRows(context);
    const fixed = [params, this.scaler, this.rows] as const;
    this.updates = SumsEncoding.ofUpdates(...fixed);
    this.labels = SumsEncoding.ofLabels(...fixed);
  }

  /** The last answer; unset at the start. */
  get ownShare(): OwnShare {
    const kept = this.context.memory.get(OWN_SHARE) as OwnShare | undefined;
    return kept ?? { asked: 0, counts: [] };
  }

  /** The centroids after all updates whose totals have arrived. */
  follow({ updates, cohorts, totals }: Totals): Known {
    const kept = this.context.memory.get(KNOWN) as Known | undefined;
    let known = kept ?? { number: 0, centroids: this.#start(), moved: null };
    const [steps, width] = [updates.shape[0]!, totals.shape[1]!];
    const size = this.context.slots.length;
    if (cohorts.shape[1] !== size || width !== this.updates.size + 1) wrongSize();
    for (let step = 0; step < steps; step++) {
      const [number, round, attempt] = row(updates, step).map(Number);
      if (number! <= known.number) continue; // it came with an attempt before
      if (number !== known.number + 1) {
        refuse("protocol-failed", "The total of an update is missing.");
      }
      const members = this.#membersOf(cohorts.data.subarray(step * size));
      const total = totals.data.subarray(step * width, (step + 1) * width);
      const sum = this.#sumOf(`update/${number}`, members, round!, attempt!);
      known = this.#moved(known, this.#read(total, sum, this.updates), members);
    }
    return known;
  }

  /** The final centroids; refuses to close before they have converged. */
  followToTheEnd(totals: Totals): Known {
    const known = this.follow(totals);
    const before = this.context.memory.get(KNOWN) as Known;
    const isLabelled = this.context.memory.has(LABELS);
    if (isLabelled && known.number !== before.number) {
      refuse("protocol-failed", "The analyst sends updates after labelling.");
    }
    const isLast = known.number >= this.params.maxIterations;
    if (!isAtRest(this.params, known.moved) && !isLast) {
      refuse(
        "protocol-failed",
        "The analyst closes before the centroids have stopped moving.",
      );
    }
    return known;
  }

  /** The means of the final labels: as they were first read, or read now. */
  means(known: Known, { closed_in, closed_by, closing }: LabelTotals): FinalMeans {
    const before = this.context.memory.get(MEANS) as FinalMeans | undefined;
    if (before) return before;
    const sum = this.#sumIn(`closing/${known.number}`, closed_by, closed_in);
    const total = this.#read(closing.data, sum, this.labels);
    const own = this.context.memory.get(LABELS) as readonly number[] | undefined;
    if (own) checkOwn(total.counts, countLabels(own, this.params.clusters));
    this.#checkSteady(known, total, sum.members);
    const means = total.sums.map((sums, c) => {
      const count = total.counts[c]!;
      return count > 0 ? sums.map((x) => x / count) : known.centroids[c]!;
    });
    return { counts: total.counts, means };
  }

  around(
    known: Known,
    final: FinalMeans,
    { gathered_in, gathered_by, gathered }: FinalTotals,
  ): Around {
    const sum = this.#sumIn(`gathered/${known.number}`, gathered_by, gathered_in);
    return this.#read(gathered.data, sum, this.aroundEncoding(known, final));
  }

  aroundEncoding({ centroids }: Known, { means }: FinalMeans): AroundEncoding {
    const ofDegrees = isFuzzy(this.params) ? centroids : [];
    return new AroundEncoding(this.scaler, means, ofDegrees, this.rows);
  }

  /** The share of a sum in hand, and where its masks belong. */
  share(
    own: BigUint64Array,
    members: readonly string[],
    name: string,
  ): { words: Words; round: number; attempt: number } {
    const { context } = this;
    const { round, attempt } = context;
    const sum = this.#sumOf(name, members, round, attempt);
    const least = this.params.leastParties;
    return {
      words: words(share(own, sum, sumMember(context, "column"), least)),
      round,
      attempt,
    };
  }

  scaledRows(rows: readonly Float64Array[]): Points {
    return rows.map((each) => this.scaler.scaled(each));
  }

  #start(): Points {
    const points = startOf(this.context, this.params);
    return equaliseCoordinates(points, this.scaler.steps);
  }

  #moved(known: Known, total: ClusterSums, members: readonly string[]): Known {
    const number = known.number + 1;
    const { asked, counts } = this.ownShare;
    const isAmong = members.includes(this.context.slot);
    if (asked === number && isAmong) checkOwn(total.counts, counts);
    this.#checkSteady(known, total, members);
    const { clusters } = this.params;
    const { steps } = this.scaler;
    const nudges = drawNudges(this.context, clusters, steps, number);
    const least = leastRowsMoved(this.params);
    const moved = move(known.centroids, total, nudges, steps, least);
    return { number, ...moved, total: { ...total, members } };
  }

  /** Compares totals of the same members, of any run; of degrees nothing follows. */
  #checkSteady(known: Known, now: ClusterSums, members: readonly string[]): void {
    if (isFuzzy(this.params)) return;
    const others = this.context.recallOfOtherRuns<Known>(KNOWN);
    for (const { total } of others) {
      const isOfSame = total?.members.join() === members.join();
      if (total && isOfSame) checkSameRows(total, now, this.slack);
    }
    if (known.total?.members.join() !== members.join()) return;
    checkSameRows(known.total, now, this.slack);
    checkNoFarther(known.total, now, known.centroids, this.slack);
  }

  get slack(): Slack {
    return slackOf(this.scaler, this.updates.units, this.rows);
  }

  #read<T>(
    total: BigUint64Array,
    sum: Sum,
    encoding: {
      readonly size: number;
      fits(words: BigUint64Array): boolean;
      decode(words: BigUint64Array, rows: number): T;
    },
  ): T {
    if (total.length !== encoding.size + 1) wrongSize();
    const member = sumMember(this.context, "column");
    const fits = (found: BigUint64Array) => encoding.fits(found);
    const rows = sumOf(sum.members.map((slot) => this.context.rowsOf(slot)));
    return encoding.decode(readTotal(total, sum, member, fits), rows);
  }

  /** The slots that a cohort marks; the label of a sum is of these members alone. */
  #membersOf(cohort: Uint8Array): readonly string[] {
    return this.context.slots.filter((_, place) => cohort[place] === 1);
  }

  #sumIn(name: string, cohort: Bytes, when: Ints): Sum {
    const [round, attempt] = Array.from(when.data, Number);
    return this.#sumOf(name, this.#membersOf(cohort.data), round!, attempt!);
  }

  #sumOf(
    name: string,
    members: readonly string[],
    round: number,
    attempt: number,
  ): Sum {
    const transcript = this.context.transcriptAt(round, attempt);
    return { members, name, transcript };
  }
}

function row({ shape, data }: Ints, number: number): bigint[] {
  const width = shape[1]!;
  return [...data.subarray(number * width, (number + 1) * width)];
}

function wrongSize(): never {
  return refuse("invalid-array", "Totals have another length than their sums.");
}
