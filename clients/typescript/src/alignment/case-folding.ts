/** Full case folding (Unicode, CaseFolding.txt, status C and F), sign by sign. */

const CHEROKEE = /\p{Script=Cherokee}/u; // whose capitals are the older letters
const DOTLESS_I = "ı";

export function caseFold(text: string): string {
  return Array.from(text, foldSign).join("");
}

function foldSign(sign: string): string {
  if (CHEROKEE.test(sign)) return sign.toUpperCase();
  return sign === DOTLESS_I ? sign : sign.toLowerCase().toUpperCase().toLowerCase();
}
