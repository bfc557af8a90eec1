import type {
  Content,
  FunctionResponse,
  LiveSendRealtimeInputParameters,
  Session,
} from '@google/genai'

import { describeResult } from './describe-history.ts'
import type { Sending } from './replay-entry.ts'
import type { LiveJournal } from './replay-buffer.ts'
import { takesNamedMedia, takesTextAsRealtime } from './model-capabilities.ts'

export interface Addressee {
  readonly session: Session
  readonly model: string
}

/** Sends what must reach the model, in the form the model takes. */
export function writeSending(to: Addressee, sending: Sending, journal: LiveJournal): void {
  if (sending.type === 'content') return writeContent(to, sending.content)
  const lost = sending.responses.filter(({ id }) => journal.isLost(id))
  const open = sending.responses.filter((response) => !lost.includes(response))
  if (open.length > 0) to.session.sendToolResponse({ functionResponses: open })
  if (lost.length > 0) writeContent(to, tellResults(lost))
}

/** A history before the conversation; the model does not answer it. */
export function writeHistory({ session, model }: Addressee, history: readonly Content[]): void {
  // Where a history was announced, `turnComplete` ends the history and asks for nothing.
  const turnComplete = takesTextAsRealtime(model)
  if (history.length > 0 || turnComplete) {
    session.sendClientContent({ turns: [...history], turnComplete })
  }
}

/** The audio or image under the name that the model reads. */
export function nameMedia(
  model: string,
  input: LiveSendRealtimeInputParameters,
): LiveSendRealtimeInputParameters {
  const { media } = input
  if (media === undefined || !takesNamedMedia(model)) return input
  const mimeType = 'mimeType' in media ? (media.mimeType ?? '') : ''
  return mimeType.startsWith('audio/') ? { audio: media } : { video: media }
}

/** The present connection does not know these calls: it is told in words what came of them. */
function tellResults(responses: readonly FunctionResponse[]): Content {
  return { role: 'user', parts: [{ text: responses.map(describeResult).join('\n') }] }
}

function writeContent({ session, model }: Addressee, content: Content): void {
  if (!takesTextAsRealtime(model)) {
    return session.sendClientContent({ turns: [content], turnComplete: true })
  }
  const parts = content.parts ?? []
  for (const { inlineData } of parts) {
    if (inlineData?.mimeType?.startsWith('image/')) session.sendRealtimeInput({ video: inlineData })
  }
  const text = parts.flatMap((part) => part.text ?? []).join('\n')
  if (text !== '') session.sendRealtimeInput({ text })
}
