import type { Blob, Part } from '@google/genai'

import type { AudioCount, DataParts } from '../../protocol/message.ts'

const PCM = /^audio\/(?:pcm|l16)\b/i
const PCM_RATE = /rate=(\d+)/i
const BYTES_PER_SAMPLE = 2

/** Whether a media type is raw PCM audio. */
export function isPcm(mimeType: string): boolean {
  return PCM.test(mimeType)
}

/** Returns PCM audio as clients receive it. Returns undefined for any other type. */
export function toPcm({ mimeType = '', data = '' }: Blob): DataParts['pcm'] | undefined {
  if (!isPcm(mimeType)) return undefined
  const sampleRate = Number(PCM_RATE.exec(mimeType)?.[1] ?? 24_000)
  return { content: data, sampleRate, channels: 1, bitDepth: 16 }
}

/** Adds PCM audio to the count of a message. */
export function countAudio(
  { chunks, bytes }: Pick<AudioCount, 'chunks' | 'bytes'> = { chunks: 0, bytes: 0 },
  { content, sampleRate }: DataParts['pcm'],
): AudioCount {
  const total = bytes + base64Length(content)
  const seconds = total / (sampleRate * BYTES_PER_SAMPLE)
  return { chunks: chunks + 1, bytes: total, seconds, sampleRate }
}

/** Adds all PCM audio in the parts of an event. */
export function countSpeech(
  count: AudioCount | undefined,
  parts: readonly Part[],
): AudioCount | undefined {
  return parts.reduce((total, { inlineData }) => {
    const pcm = inlineData && toPcm(inlineData)
    return pcm ? countAudio(total, pcm) : total
  }, count)
}

/** Returns the number of bytes that a base64 text encodes. */
function base64Length(text: string): number {
  const padding = text.endsWith('==') ? 2 : Number(text.endsWith('='))
  return (text.length / 4) * 3 - padding
}
