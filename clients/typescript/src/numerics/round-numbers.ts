/** Round numbers: 1, 2 and 5 times the powers of ten. */

const FACTORS = [1, 2, 5, 10];

/** The least round number that is no smaller; 0 of 0. */
export function roundUp(number: number): number {
  if (!(number > 0)) return 0;
  const power = Math.floor(Math.log10(number)) - 1;
  const candidates = [power, power + 1, power + 2].flatMap((each) =>
    FACTORS.map((factor) => Number(`${factor}e${each}`)),
  );
  return candidates.find((candidate) => candidate >= number)!;
}
