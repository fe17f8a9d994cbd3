/**
 * Stage: several starts race, and the best one continues alone.
 *
 * Each makes one update, whose sums all parties read, with the sum of squares around the
 * start. So all parties know the objective of each start after the update.
 */

import type { RaceAddUp, RaceShare } from "../../../generated/llf.ts";
import { equaliseCoordinates } from "../../../numerics/coincidence.ts";
import { squaredDistance, type Points } from "../../../numerics/points.ts";
import { FixedPoint } from "../../../secrecy/fixed-point.ts";
import { readTotal, share, type Sum } from "../../../secrecy/sums.ts";
import type { PartyContext, Reply, Stage, Table } from "../../../session/contract.ts";
import { squared, sumOf } from "../../../stages/pooled.ts";
import { sumMember } from "../../../stages/secrets.ts";
import { words } from "../../../wire/arrays.ts";
import { refuse } from "../../../wire/problems.ts";
import { move } from "../centroids.ts";
import type { ClusterSums } from "../cluster-sums.ts";
import { degreesOf, raised } from "../fuzziness.ts";
import { isFromParties, isFuzzy, leastRowsMoved, type LlfParams } from "../params.ts";
import { drawWithin, START } from "../scaler.ts";
import { auditSums } from "./audit.ts";
import { KNOWN, RowsRound, type Known } from "./following.ts";
import { sumRows } from "./passes.ts";
import { checkOwn, checkSameRows } from "./steadiness.ts";

const PROGRESS = "race-progress";
const DIGITS = 9; // values that agree to so many are equal

/** The words that this party has added, by start, and the transcript of that sum. */
interface Progress {
  readonly transcript: string;
  readonly own: readonly (readonly number[])[];
}

export function raceStage(params: LlfParams): Stage {
  return {
    name: "race",
    exchanges: [
      { task: "add-up", answer: "share", least: 2, most: 2, audience: "column" },
    ],
    role: {
      reply(context, task, table) {
        const { phase, total } = task as RaceAddUp;
        const before = context.memory.get(PROGRESS) as Progress | undefined;
        if (phase !== (before ? 2 : 1)) {
          refuse("protocol-failed", "The analyst asks for a phase out of order.");
        }
        const race = new Race(new RowsRound(context, params));
        return before ? race.choose(before, total.data) : race.add(table, total.data);
      },
    },
  };
}

class Race {
  readonly #here: RowsRound;
  readonly #lanes: readonly Points[];
  readonly #values: FixedPoint;

  constructor(here: RowsRound) {
    this.#here = here;
    this.#lanes = lanesOf(here).map((points) =>
      equaliseCoordinates(points, here.scaler.steps),
    );
    this.#values = new FixedPoint(
      this.#lanes.map((points) => here.rows * here.scaler.farthestFrom(points)),
    );
  }

  /** Adds an update of each start, and the objective of the own rows around it. */
  add(table: Table, total: BigUint64Array): Reply {
    if (total.length) refuse("invalid-array", "No total precedes the race.");
    const { context, params, updates } = this.#here;
    const rows = this.#here.scaledRows(table.rows);
    const audited = auditSums(this.#here, rows, this.#lanes);
    const sums = this.#lanes.map((lane) => sumRows(this.#here, rows, lane));
    const values = this.#lanes.map((lane) => valueOf(rows, lane, params.fuzzifier));
    const own = [
      ...sums.map((each) => updates.encode(each)),
      this.#values.encode(values),
    ];
    const { transcript } = context;
    const hidden = share(
      BigUint64Array.from(own.flatMap((each) => [...each])),
      sumAt(context, transcript),
      sumMember(context, "column"),
      params.leastParties,
    );
    const weights = sums.map(({ counts }) => counts.map((n) => n / updates.weightUnit));
    const progress: Progress = { transcript, own: weights };
    return {
      contribution: shared(hidden),
      remember: { [PROGRESS]: progress, ...audited },
    };
  }

  /** Keeps the start of least value after its update, and nothing of the others. */
  choose({ transcript, own }: Progress, total: BigUint64Array): Reply {
    const { context, updates } = this.#here;
    const size = this.#lanes.length * (updates.size + 1);
    if (total.length !== size + 1) {
      refuse("invalid-array", "A total has another length than its sum.");
    }
    const member = sumMember(context, "column");
    const sum = sumAt(context, transcript);
    const read = readTotal(total, sum, member, (found) => this.#fits(found));
    const sums = this.#split(read).map((part) => updates.decode(part, this.#here.rows));
    this.#check(sums, own);
    const before = this.#values.decode(read.slice(-this.#lanes.length));
    const after = sums.map((each, lane) => {
      const value = before[lane]! - this.#gainOf(this.#lanes[lane]!, each);
      return Number(value.toPrecision(DIGITS));
    });
    const best = after.indexOf(Math.min(...after));
    const [centroids, found] = [this.#lanes[best]!, sums[best]!];
    const members = context.slots;
    const first: Known = {
      number: 0,
      centroids,
      moved: null,
      total: { ...found, members },
    };
    const remember = {
      [START]: [centroids],
      [KNOWN]: first,
      [PROGRESS]: null,
    };
    return { contribution: shared(new BigUint64Array()), remember };
  }

  /** Refuses totals of different rows, or of fewer than this party has. */
  #check(sums: readonly ClusterSums[], own: Progress["own"]): void {
    const { context, params, slack } = this.#here;
    sums.forEach(({ counts }, lane) => checkOwn(counts, own[lane]!));
    if (isFuzzy(params)) return;
    const [first, ...raced] = sums;
    for (const each of raced) checkSameRows(first!, each, slack);
    this.#here.checkOtherRuns({ ...first!, members: context.slots });
  }

  /** By how much an update makes the value less: Σ_c n_c ‖v_c(1) - v_c(0)‖². */
  #gainOf(centroids: Points, sums: ClusterSums): number {
    const { params, scaler } = this.#here;
    const still = centroids.map(({ length }) => new Float64Array(length));
    const least = leastRowsMoved(params);
    const moved = move(centroids, sums, still, scaler.steps, least).centroids;
    const gains = moved.map((point, c) => {
      const squares = [...point].map((x, f) => squared(x - centroids[c]![f]!));
      return sums.counts[c]! * sumOf(squares);
    });
    return sumOf(gains);
  }

  #split(read: BigUint64Array): readonly BigUint64Array[] {
    const { size } = this.#here.updates;
    return this.#lanes.map((_, lane) => read.subarray(lane * size, (lane + 1) * size));
  }

  #fits(read: BigUint64Array): boolean {
    const { updates } = this.#here;
    const values = read.subarray(-this.#lanes.length);
    return (
      this.#split(read).every((part) => updates.fits(part)) && this.#values.fits(values)
    );
  }
}

/** Σ_c Σ_i μ_ci^λ ‖x_i - v_c‖²; of rows without degrees, to the nearest. */
function valueOf(
  rows: Points,
  centroids: Points,
  fuzzifier: number | undefined,
): number {
  const values = rows.map((row) => {
    if (fuzzifier === undefined) {
      return Math.min(...centroids.map((centroid) => squaredDistance(row, centroid)));
    }
    const { degrees, squares } = degreesOf(row, centroids, fuzzifier);
    return sumOf(degrees.map((degree, c) => raised(degree, fuzzifier) * squares[c]!));
  });
  return sumOf(values);
}

/** V(0) of each start: sent by a party, or drawn by all from the same stream. */
function lanesOf({ context, params }: RowsRound): readonly Points[] {
  return isFromParties(params)
    ? context.recall<readonly Points[]>(START)
    : Array.from({ length: params.starts }, (_, lane) =>
        drawWithin(context, params, lane),
      );
}

function sumAt({ slots }: PartyContext, transcript: string): Sum {
  return { members: slots, name: "race", transcript };
}

function shared(hidden: BigUint64Array): RaceShare {
  return { kind: "share", words: words(hidden) };
}
