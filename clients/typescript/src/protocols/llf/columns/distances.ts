/** Squared distances over a party's columns: how they are encoded and hidden. */

import { roundToEven } from "../../../numerics/floats.ts";
import { squaredDistance, type Points } from "../../../numerics/points.ts";
import { FixedPoint } from "../../../secrecy/fixed-point.ts";
import { labelOf, mask } from "../../../secrecy/sums.ts";
import { audiences } from "../../../roster/terms.ts";
import type { PartyContext } from "../../../session/contract.ts";
import { squared, sumOf } from "../../../stages/pooled.ts";
import { groupStream, sumMember } from "../../../stages/secrets.ts";
import type { Words } from "../../../wire/arrays.ts";
import { refuse } from "../../../wire/problems.ts";
import type { LlfParams } from "../params.ts";
import { limitsOf } from "../scaler.ts";

/** Twice the largest feature, and a little more for rounding. */
const REACH = 2.01;

/**
 * Distances (n, k) as words, each row at its place, masked.
 *
 * @param isShifted whether the analyst reads how they differ within a row alone
 */
export function hiddenDistances(
  context: PartyContext,
  params: LlfParams,
  travelling: Points,
  centroids: Points,
  name: string,
  isShifted: boolean,
): Words {
  const [bound, unit] = encodingOf(context, params);
  const whole = travelling.flatMap((row) =>
    centroids.map((point) => roundToEven(squaredDistance(row, point) * unit)),
  );
  if (whole.some((distance) => distance > bound * unit)) {
    refuse("guard-refused", "Distances exceed the bound that the parties agreed on.");
  }
  const data = BigUint64Array.from(whole, BigInt);
  hide(context, params, data, centroids.length, name, isShifted);
  return { shape: [travelling.length, centroids.length], data };
}

/** Masks words; the first slot shifts all words of a row alike, if they are shifted. */
function hide(
  context: PartyContext,
  params: LlfParams,
  words: BigUint64Array,
  width: number,
  name: string,
  isShifted: boolean,
): void {
  const { slots, slot, transcript } = context;
  const sum = { members: slots, name, transcript };
  if (isShifted && slots[0] === slot) {
    const stream = groupStream(context, "row", `shift/${labelOf(sum)}`);
    stream.words(words.length / width).forEach((shift, row) => {
      for (let c = 0; c < width; c++) words[row * width + c]! += shift;
    });
  }
  mask(words, sum, sumMember(context, "row"), params.leastParties);
}

/** The bound of distances over all columns, and the unit in which they stand. */
function encodingOf(context: PartyContext, params: LlfParams): [number, number] {
  const limits = limitsOfAll(context, params);
  const bound = sumOf(limits.map(({ value }) => squared(REACH * value)));
  return [bound, new FixedPoint([bound]).units[0]!];
}

/** The limits of the columns of all parties of a row group. */
export function limitsOfAll(context: PartyContext, params: LlfParams) {
  const groups = audiences(context.agreement.terms, "column");
  return groups.flatMap((_, column) => limitsOf(context, params, column));
}

/** How many columns all parties of a row group have together. */
export function columnsOf(context: PartyContext): number {
  return sumOf(context.group("row").map((slot) => context.member(slot).n_columns));
}
