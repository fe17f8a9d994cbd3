/** Arithmetic modulo p = 2^61 - 1, and tags of words (spec, sections 2 and 10). */

import type { WordSource } from "./chance.ts";

export const P = 2n ** 61n - 1n;

const BLOCK = 1024;

/** The residue of any whole number, a negative one too. */
export function residueOf(value: bigint): bigint {
  const rest = value % P;
  return rest < 0n ? rest + P : rest;
}

/** Uniform residues: words that give p are drawn again, behind all others. */
export function drawResidues(source: WordSource, size: number): bigint[] {
  const drawn = Array.from(source.words(size), (word) => word & P);
  for (;;) {
    const rejected = drawn.flatMap((each, place) => (each === P ? [place] : []));
    if (!rejected.length) return drawn;
    const again = source.words(rejected.length);
    rejected.forEach((place, number) => (drawn[place] = again[number]! & P));
  }
}

export function drawResidue(source: WordSource): bigint {
  return drawResidues(source, 1)[0]!;
}

/** The tag of words, read as signed; Horner's rule over blocks of 1,024. */
export function tagOf(words: BigUint64Array, source: WordSource): bigint {
  const weights = drawResidues(source, BLOCK);
  const base = drawResidue(source);
  let found = 0n;
  for (let block = Math.ceil(words.length / BLOCK) - 1; block >= 0; block--) {
    let sum = found * base;
    words.subarray(block * BLOCK, (block + 1) * BLOCK).forEach((word, place) => {
      sum += BigInt.asIntN(64, word) * weights[place]!;
    });
    found = residueOf(sum);
  }
  return found;
}
