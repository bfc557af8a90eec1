import type {
  Content,
  FunctionResponse,
  LiveSendRealtimeInputParameters,
  Session,
} from '@google/genai'

import { describeResult } from './replay-buffer.ts'
import type { Outgoing, ReplayBuffer } from './replay-buffer.ts'

/** `projects/…/models/gemini-x` and `models/gemini-x` are `gemini-x`. */
const bareName = (model: string): string => model.slice(model.lastIndexOf('/') + 1)

const isFlashLive = (name: string): boolean => /^gemini-3\.\d+-flash-live/.test(name)

/**
 * Whether a model is known to have no live sessions, by Google's model pages: models with a plain name of their family, and those for
 * speech and images. Returns false for an unknown model.
 */
export function isNeverLive(model: string): boolean {
  const name = bareName(model)
  return /^gemini-\d(?:\.\d+)?-(?:pro|flash|flash-lite)(?:-(?:latest|preview|image|tts|\d+))*$/.test(
    name,
  )
}

/** Whether a model takes text as `realtimeInput`, and `clientContent` only as a history at the start. Other models take it at any time. */
export function takesTextAsRealtime(model: string): boolean {
  return isFlashLive(bareName(model))
}

/** Whether a model reads `audio` and `video`. Older models read the deprecated `mediaChunks`. */
function takesAudioAndVideo(model: string): boolean {
  const name = bareName(model)
  return name.startsWith('gemini-3') || name.includes('native-audio')
}

/** Whether a live model completes a turn with calls at once, and not after their results. Public reports differ by generation. */
export function completesCalls(model: string): boolean {
  return !isFlashLive(bareName(model))
}

/**
 * Whether a live model takes functions declared `NON_BLOCKING`, and `scheduling` in their responses. By Google's model pages: the
 * 2.x live models do, `gemini-3.1-flash-live-preview` does not ("function calling is synchronous only"), `gemini-3.8-live` does it
 * by default. Returns false for an unknown model: it might reject the setup.
 */
export function takesNonBlockingCalls(model: string): boolean {
  const name = bareName(model)
  if (isFlashLive(name)) return false
  return /^gemini-(?:2\.\d+-flash-(?:live|native-audio)|live-2\.\d+-|3\.\d+-live)/.test(name)
}

/** Whether a model thinks and sends its thoughts. Returns false for an unknown model: it might reject the setup. */
export function supportsThoughts(model: string): boolean {
  const name = bareName(model)
  return isFlashLive(name) || name.includes('native-audio')
}

interface SendTarget {
  readonly session: Session
  readonly model: string
}

/** Sends a message in the form that the model accepts. */
export function sendOutgoing(target: SendTarget, message: Outgoing, buffer: ReplayBuffer): void {
  if (message.type === 'content') return sendContent(target, message.content)
  const lost = message.responses.filter(({ id }) => buffer.isLost(id))
  const open = message.responses.filter((response) => !lost.includes(response))
  if (open.length > 0) target.session.sendToolResponse({ functionResponses: open.map(withContent) })
  // The model would reply to a text. The history contains partial results of lost calls.
  if (lost.length > 0 && message.type === 'results') sendContent(target, toText(lost))
}

/** LV1066: adds a status to a result without content, because a live model would repeat the call. */
function withContent(result: FunctionResponse): FunctionResponse {
  const { response = {}, willContinue } = result
  if (willContinue || !Object.values(response).every(isEmpty)) return result
  return Object.assign({}, result, { response: { ...response, status: 'succeeded' } })
}

function isEmpty(value: unknown): boolean {
  if (typeof value === 'object' && value !== null) return Object.values(value).every(isEmpty)
  return value === undefined || value === null || value === ''
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
export function chooseMediaField(
  model: string,
  input: LiveSendRealtimeInputParameters,
): LiveSendRealtimeInputParameters {
  const { media } = input
  if (media === undefined || !takesAudioAndVideo(model)) return input
  const mimeType = 'mimeType' in media ? (media.mimeType ?? '') : ''
  return mimeType.startsWith('audio/') ? { audio: media } : { video: media }
}

/** Returns the results of calls that the current connection does not know, as text. */
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
