/** Envelopes from one party to another through the analyst (spec, section 8). */

import { Aes128Gcm, CipherSuite, HkdfSha256 } from "@hpke/core";
import { DhkemX25519HkdfSha256 } from "@hpke/dhkem-x25519";
import { concat, hexDigest, lengthPrefixed, unhex } from "../wire/bytes.ts";
import type { RoundRef } from "../wire/packets.ts";
import { Problem } from "../wire/problems.ts";
import { isSigned, sign, type PartyKeys, type PublicKeys } from "./keys.ts";

/** Everything that an envelope is bound to. */
export interface Binding extends RoundRef {
  readonly transcript: string;
  readonly session: string;
  readonly sender: string;
  readonly receiver: string;
  readonly kind: string;
}

const SIGNATURE_BYTES = 64;
const KEY_BYTES = 32;
const SUITE = new CipherSuite({
  kem: new DhkemX25519HkdfSha256(),
  kdf: new HkdfSha256(),
  aead: new Aes128Gcm(),
});

/** The bytes that are HPKE's `info` and stand under the signature. */
function envelopeInfo(bound: Binding): Uint8Array {
  return lengthPrefixed(
    "coterie/envelope/3",
    bound.transcript,
    bound.session,
    bound.stage,
    bound.round,
    bound.attempt,
    bound.sender,
    bound.receiver,
    bound.kind,
  );
}

export async function sealEnvelope(
  content: Uint8Array,
  bound: Binding,
  own: PartyKeys,
  peer: PublicKeys,
): Promise<Uint8Array> {
  const info = envelopeInfo(bound);
  const recipientPublicKey = await SUITE.kem.deserializePublicKey(
    bufferOf(unhex(peer.x25519)),
  );
  const sender = await SUITE.createSenderContext({
    recipientPublicKey,
    info: bufferOf(info),
  });
  const ciphertext = await sender.seal(bufferOf(content));
  const sealed = concat([new Uint8Array(sender.enc), new Uint8Array(ciphertext)]);
  return concat([sign(own.signing, signedBytes(info, sealed)), sealed]);
}

/** The content of an envelope; `envelope-refused` if anything differs. */
export async function openEnvelope(
  envelope: Uint8Array,
  bound: Binding,
  own: PartyKeys,
  peer: PublicKeys,
): Promise<Uint8Array> {
  const info = envelopeInfo(bound);
  const signature = envelope.subarray(0, SIGNATURE_BYTES);
  const sealed = envelope.subarray(SIGNATURE_BYTES);
  const what = `Envelope '${bound.kind}' from '${bound.sender}', round ${bound.round}.`;
  if (!isSigned(peer.ed25519, signedBytes(info, sealed), signature)) {
    throw new Problem("envelope-refused", what);
  }
  try {
    const receiver = await SUITE.createRecipientContext({
      recipientKey: await SUITE.kem.deserializePrivateKey(bufferOf(own.opening)),
      enc: bufferOf(sealed.subarray(0, KEY_BYTES)),
      info: bufferOf(info),
    });
    return new Uint8Array(await receiver.open(bufferOf(sealed.subarray(KEY_BYTES))));
  } catch {
    throw new Problem("envelope-refused", what);
  }
}

function signedBytes(info: Uint8Array, sealed: Uint8Array): Uint8Array {
  return lengthPrefixed(info, hexDigest(sealed));
}

function bufferOf(bytes: Uint8Array): ArrayBuffer {
  return bytes.slice().buffer as ArrayBuffer;
}
