import type {
  Content,
  FunctionResponse,
  LiveSendRealtimeInputParameters,
  Session,
} from '@google/genai'

import { describeResult } from './describe-history.ts'
import { takesNamedMedia, takesTextAsRealtime } from './model-capabilities.ts'
import type { Outgoing, ReplayBuffer } from './replay-buffer.ts'

export interface SendTarget {
  readonly session: Session
  readonly model: string
}

/** Sends a message in the form that the model accepts. */
export function sendOutgoing(target: SendTarget, message: Outgoing, buffer: ReplayBuffer): void {
  if (message.type === 'content') return sendContent(target, message.content)
  const lost = message.responses.filter(({ id }) => buffer.isLost(id))
  const open = message.responses.filter((response) => !lost.includes(response))
  if (open.length > 0) target.session.sendToolResponse({ functionResponses: open })
  // The model would reply to a text. The history contains partial results of lost calls.
  if (lost.length > 0 && message.type === 'results') sendContent(target, toText(lost))
}

/** Sends the history before the conversation starts. The model does not reply to it. */
export function sendHistory({ session, model }: SendTarget, history: readonly Content[]): void {
  // If the setup announced a history, `turnComplete` ends the history and requests no reply.
  const turnComplete = takesTextAsRealtime(model)
  if (history.length > 0 || turnComplete) {
    session.sendClientContent({ turns: [...history], turnComplete })
  }
}

/** Puts audio or an image into the field that the model reads. */
export function nameMedia(
  model: string,
  input: LiveSendRealtimeInputParameters,
): LiveSendRealtimeInputParameters {
  const { media } = input
  if (media === undefined || !takesNamedMedia(model)) return input
  const mimeType = 'mimeType' in media ? (media.mimeType ?? '') : ''
  return mimeType.startsWith('audio/') ? { audio: media } : { video: media }
}

/** Results of calls that the present connection does not know, as text. */
function toText(responses: readonly FunctionResponse[]): Content {
  return { role: 'user', parts: [{ text: responses.map(describeResult).join('\n') }] }
}

function sendContent({ session, model }: SendTarget, content: Content): void {
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
