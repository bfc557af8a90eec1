import type { SocketClient } from '../../sockets/support/socket-client.ts'

const RATE = 16_000
/** The size of one audio frame. */
const PIECE_BYTES = 3_200

/** Speech followed by enough silence. The emulator's options define the transcript. */
const UTTERANCE: readonly Buffer[] = cut(Buffer.concat([tone(600), Buffer.alloc(2 * RATE * 0.6)]))

/** The start of speech, without an end. */
const BEGINNING: readonly Buffer[] = cut(tone(400))

function tone(ms: number): Buffer {
  const samples = new Int16Array((RATE * ms) / 1000).map((_, at) => Math.sin(at / 5) * 8000)
  return Buffer.from(samples.buffer)
}

function cut(pcm: Buffer): Buffer[] {
  const count = Math.ceil(pcm.length / PIECE_BYTES)
  return Array.from({ length: count }, (_, index) =>
    pcm.subarray(index * PIECE_BYTES, (index + 1) * PIECE_BYTES),
  )
}

/** Sends speech in binary frames. */
export function speak(client: SocketClient): void {
  for (const piece of UTTERANCE) client.socket.send(piece)
}

export function beginToSpeak(client: SocketClient): void {
  for (const piece of BEGINNING) client.socket.send(piece)
}

/** Sends speech whose end is marked by a frame, and not by silence. */
export function speakUpTo(client: SocketClient, id = 'chat-1'): void {
  beginToSpeak(client)
  client.send({ type: 'audio-end', id })
}

/** Sends speech in JSON frames. */
export function speakInJson(client: SocketClient, id = 'chat-1'): void {
  const mimeType = `audio/pcm;rate=${RATE}`
  for (const piece of UTTERANCE)
    client.send({ type: 'audio', id, data: piece.toString('base64'), mimeType })
}
