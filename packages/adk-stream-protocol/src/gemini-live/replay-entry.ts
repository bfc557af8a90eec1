import type { Content, FunctionCall, FunctionResponse } from '@google/genai'

/** Something that must reach the model. Audio is not: it may be lost with its connection. */
export type Sending =
  | { readonly type: 'content'; readonly content: Content }
  | { readonly type: 'results'; readonly responses: readonly FunctionResponse[] }

/**
 * How far a message has come. `talked-over`: sent while the model spoke, so that what is heard of the turn under way says nothing
 * about it. `taken`: the model reacted. `answered`: the turn in which it did so has ended.
 */
export type Progress = 'unsent' | 'talked-over' | 'sent' | 'taken' | 'answered'

export interface Sent {
  readonly type: 'sent'
  readonly sending: Sending
  progress: Progress
  deliveries: number
  deliveredAt: number
}

export type Entry =
  | Sent
  | { readonly type: 'heard'; text: string; progress: Progress }
  | { readonly type: 'said'; text: string; progress: 'taken' | 'answered' }
  | { readonly type: 'called'; readonly call: FunctionCall }

export function isSent(entry: Entry): entry is Sent {
  return entry.type === 'sent'
}

export function isAsking(entry: Entry): entry is Exclude<Entry, { type: 'said' | 'called' }> {
  return entry.type === 'sent' || entry.type === 'heard'
}

export function isResults(entry: Entry): boolean {
  return isSent(entry) && entry.sending.type === 'results'
}

export function isWaiting({ progress }: Sent): boolean {
  return progress !== 'taken' && progress !== 'answered'
}

/** What the state behind an older handle cannot be brought to by asking again. */
export function isBeyondReturn(entry: Entry): boolean {
  return entry.type === 'called' || entry.progress === 'answered'
}

/** What the next connection is asked. Half an answer is not kept: it is given anew. */
export function toAskAgain(entry: Entry): Entry[] {
  if (entry.type === 'sent') return [{ ...entry, progress: 'unsent' }]
  if (entry.type !== 'heard' || entry.progress !== 'taken') return []
  const content = { role: 'user', parts: [{ text: entry.text }] }
  return [
    {
      type: 'sent',
      sending: { type: 'content', content },
      progress: 'unsent',
      deliveries: 1,
      deliveredAt: 0,
    },
  ]
}

export function toContent(entry: Entry): Content {
  switch (entry.type) {
    case 'said':
      return { role: 'model', parts: [{ text: entry.text }] }
    case 'heard':
      return { role: 'user', parts: [{ text: entry.text }] }
    case 'called':
      return { role: 'model', parts: [{ functionCall: entry.call }] }
    case 'sent':
      return toSentContent(entry.sending)
  }
}

function toSentContent(sending: Sending): Content {
  if (sending.type === 'content') return sending.content
  return {
    role: 'user',
    parts: sending.responses.map((functionResponse) => ({ functionResponse })),
  }
}
