import type { LlmRequest } from '@google/adk'
import type {
  Content,
  FunctionCall,
  FunctionResponse,
  LiveCallbacks,
  LiveServerContent,
  LiveServerMessage,
  Part,
} from '@google/genai'

import { isPcm } from '../../../agent/translate/count-usage.ts'
import { SparseSet } from '../../../shared/collections.ts'
import { LiveConnectionError } from './gemini-socket.ts'
import type { ReplayBuffer } from './replay-buffer.ts'
import { isObject } from '../../../protocol/guards.ts'

/** `moved`: another server continues the session. */
export type LiveStatus = 'connecting' | 'open' | 'reconnecting' | 'closed' | 'moved'

/** A part of a live session that ADK drops. */
export type LiveMark =
  /** The model's turn ends for this reason. */
  | { readonly type: 'turn-ending'; readonly reason: string }
  /** The model called tools that do not exist, and has received results that say so. */
  | { readonly type: 'unknown-calls'; readonly toolCallIds: readonly string[] }

/** Events of a live session that ADK does not report, or reports too late. */
export interface LiveHooks {
  /** An agent is about to connect with this request. The hook may change the request. */
  readonly onConnecting: (request: LlmRequest) => void
  readonly onConnected: () => void
  /** The model cancelled calls. ADK receives none of them afterwards; it may not have received some of them before. */
  readonly onCancelled: (toolCallIds: readonly string[]) => void
  /** The model produced output. Called at once; ADK's events carry the same `Part` objects later. */
  readonly onOutput: (parts: readonly Part[]) => void
  /**
   * Something that ADK 2.0.0 drops, and that must be known at its place in the order of ADK's events. ADK yields an event with this part
   * there. The part is empty and is neither stored nor streamed.
   */
  readonly onMark: (part: Part, mark: LiveMark) => void
  /** The model was interrupted. Called at once: ADK drops the flag for text, and delivers it after buffered audio. */
  readonly onInterrupted: () => void
  /**
   * The connection was lost during the model's reply. ADK then yields the end of that turn, marked as interrupted, and after it the reply
   * from its beginning.
   */
  readonly onReplyLost: () => void
  /** A message closed the connection each time it was sent. It is dropped: no reply to it will come. */
  readonly onDropped: (error: unknown) => void
  readonly onStatus: (status: LiveStatus) => void
  /** Gemini sent a resumption handle. */
  readonly onHandle: () => void
  /** An error that the session recovered from: an invalid frame, a failed attempt, a message that the SDK rejected. */
  readonly onError: (error: unknown) => void
}

interface MessageReceiverOptions {
  readonly hooks: LiveHooks
  readonly isTool: (name: string) => boolean
  /** ADK's callbacks. */
  readonly callbacks: Pick<LiveCallbacks, 'onmessage'>
}

/** The session that owns the connection. */
export interface ConnectionHandler {
  /** The connection delivered output or a call. */
  onProgress(): void
  /** Sends results of calls that no tool runs. */
  sendResults(responses: readonly FunctionResponse[]): void
  /** Gemini sent a resumption handle. */
  onHandle(): void
  onGoAway(timeLeft: string | undefined): void
}

/** Receives Gemini's messages. Handles those that concern the connection, and forwards the rest to ADK. */
export class MessageReceiver {
  readonly #options: MessageReceiverOptions
  readonly #buffer: ReplayBuffer
  readonly #handler: ConnectionHandler
  /** Calls that wait in ADK's queue. */
  readonly #queued = new SparseSet<FunctionCall>()
  #cancelled: WeakSet<FunctionCall> | undefined
  #buffered: Buffered = NOTHING_BUFFERED

  constructor(options: MessageReceiverOptions, buffer: ReplayBuffer, handler: ConnectionHandler) {
    this.#options = options
    this.#buffer = buffer
    this.#handler = handler
  }

  receive(message: LiveServerMessage): void {
    if (!isWellFormed(message)) {
      const reason = 'A message has fields of the wrong type.'
      const error = new LiveConnectionError({ code: 'invalid-frame', reason, phase: 'open' })
      return this.#options.hooks.onError(error)
    }
    for (const piece of splitParts(message)) this.#receivePiece(piece)
  }

  #receivePiece(message: LiveServerMessage): void {
    if (message.serverContent) {
      this.#receiveContent(message.serverContent)
      this.#flushBefore(message.serverContent)
      const { turnComplete, turnCompleteReason: reason } = message.serverContent
      if (turnComplete && reason) this.#mark({ type: 'turn-ending', reason })
    }
    if (isContentOnly(message)) this.#forward(message)
    else this.#receiveMixed(message)
  }

  #mark(mark: LiveMark): void {
    const part: Part = { text: '' }
    this.#options.hooks.onMark(part, mark)
    this.#forward(toMessage({ serverContent: { modelTurn: { role: 'model', parts: [part] } } }))
  }

  #forward(message: LiveServerMessage): void {
    this.#options.callbacks.onmessage(message)
  }

  /** Takes a call out of ADK's queue. Returns false if the model has cancelled it meanwhile. */
  acceptCall(call: FunctionCall): boolean {
    this.#queued.delete(call)
    return this.#cancelled?.has(call) !== true
  }

  /** Ends the model's turn if the connection was lost during it. The model repeats the reply on the next connection. */
  endLostTurn(): void {
    const { hooks } = this.#options
    if (!this.#buffer.isSpeaking) return
    hooks.onInterrupted()
    hooks.onReplyLost()
    this.#forward(toMessage({ serverContent: { interrupted: true, turnComplete: true } }))
  }

  #receiveContent(content: LiveServerContent): void {
    const buffer = this.#buffer
    const { hooks } = this.#options
    const { modelTurn, inputTranscription, outputTranscription } = content
    this.#handler.onProgress()
    if (inputTranscription?.text) buffer.addUserSpeech(inputTranscription.text)
    if (modelTurn?.parts) {
      hooks.onOutput(modelTurn.parts)
      buffer.addModelSpeech(toText(modelTurn))
    }
    if (outputTranscription?.text) buffer.addModelSpeech(outputTranscription.text)
    if (content.interrupted) hooks.onInterrupted()
    if (content.turnComplete) buffer.endTurn()
  }

  #receiveMixed(message: LiveServerMessage): void {
    const { forAdk, calls, unknownCalls } = splitMessage(message, this.#options.isTool)
    if (calls.length > 0) this.#flushTranscript()
    for (const call of calls) this.#receiveCall(call)
    if (forAdk) this.#forward(forAdk)
    if (unknownCalls.length > 0) this.#rejectCalls(unknownCalls)
    const cancelled = message.toolCallCancellation?.ids ?? []
    if (cancelled.length > 0) this.#cancel(cancelled)
    this.#receiveConnectionUpdate(message)
  }

  #rejectCalls(calls: readonly FunctionCall[]): void {
    this.#flushTranscript()
    this.#mark({ type: 'unknown-calls', toolCallIds: calls.flatMap(({ id }) => id ?? []) })
    for (const call of calls) this.#buffer.registerCall(call)
    this.#handler.sendResults(calls.map(toUnknownToolResult))
  }

  #receiveConnectionUpdate({ sessionResumptionUpdate, goAway }: LiveServerMessage): void {
    const { newHandle, resumable } = sessionResumptionUpdate ?? {}
    if (newHandle && resumable !== false) {
      this.#buffer.checkpoint(newHandle)
      this.#handler.onHandle()
    }
    if (goAway) this.#handler.onGoAway(goAway.timeLeft)
  }

  /** Makes ADK yield buffered output before the content that follows it. */
  #flushBefore(content: LiveServerContent): void {
    const { textKind } = this.#buffered
    const parts = content.modelTurn?.parts ?? []
    if (parts.some((part) => kindOf(part) !== 'audio')) this.#flushTranscript()
    if (textKind && endsText(textKind, content)) {
      this.#buffered = { ...this.#buffered, textKind: undefined }
      this.#forward(toMessage({ serverContent: { modelTurn: { parts: [] } } }))
    }
    this.#buffered = nextBuffered(this.#buffered, content)
  }

  /** Makes ADK yield the buffered transcript before a call or other output. */
  #flushTranscript(): void {
    if (!this.#buffered.isTranscribing) return
    this.#buffered = { ...this.#buffered, isTranscribing: false }
    this.#forward(toMessage({ serverContent: { outputTranscription: { finished: true } } }))
  }

  #receiveCall(call: FunctionCall): void {
    this.#handler.onProgress()
    this.#buffer.addCall(call)
    this.#queued.add(call)
  }

  #cancel(toolCallIds: readonly string[]): void {
    for (const call of this.#queued) {
      if (!toolCallIds.includes(call.id ?? '')) continue
      this.#cancelled ??= new WeakSet()
      this.#cancelled.add(call)
    }
    this.#options.hooks.onCancelled(toolCallIds)
  }
}

type PartKind = 'text' | 'thought' | 'audio' | 'other'

function kindOf({ text, thought, inlineData }: Part): PartKind {
  if (typeof text === 'string') return thought ? 'thought' : 'text'
  return isPcm(inlineData?.mimeType ?? '') ? 'audio' : 'other'
}

/**
 * Splits a message whose parts are of several kinds, or that has parts and calls. ADK 2.0.0 treats a message
 * with text as a piece of text, and ignores everything else in it.
 */
function splitParts(message: LiveServerMessage): LiveServerMessage[] {
  const { modelTurn, ...rest } = message.serverContent ?? {}
  const groups: Part[][] = []
  for (const part of modelTurn?.parts ?? []) {
    const group = groups.at(-1)
    if (group?.[0] && kindOf(group[0]) === kindOf(part)) group.push(part)
    else groups.push([part])
  }
  const hasCalls = (message.toolCall?.functionCalls ?? []).length > 0
  if (groups.length === 0 || (groups.length === 1 && !hasCalls)) return [message]
  const last = hasCalls ? undefined : groups.pop()
  const { serverContent: _, ...others } = message
  return [
    ...groups.map((parts) => toMessage({ serverContent: { modelTurn: { ...modelTurn, parts } } })),
    {
      ...others,
      serverContent: { ...rest, ...(last && { modelTurn: { ...modelTurn, parts: last } }) },
    } as LiveServerMessage,
  ]
}

/**
 * The output that ADK 2.0.0 buffers until the model's turn ends. It must be stored and streamed before later output, so `MessageReceiver`
 * sends messages that make ADK flush it.
 */
interface Buffered {
  readonly isTranscribing: boolean
  readonly textKind: 'text' | 'thought' | undefined
}

const NOTHING_BUFFERED: Buffered = { isTranscribing: false, textKind: undefined }

function nextBuffered(
  { isTranscribing, textKind }: Buffered,
  content: LiveServerContent,
): Buffered {
  return {
    isTranscribing:
      !endsTranscript(content) && (isTranscribing || Boolean(content.outputTranscription?.text)),
    textKind: nextTextKind(textKind, content),
  }
}

function nextTextKind(
  textKind: Buffered['textKind'],
  { modelTurn, interrupted, turnComplete }: LiveServerContent,
): Buffered['textKind'] {
  if (interrupted || turnComplete) return undefined
  const parts = modelTurn?.parts ?? []
  const last = parts.findLast(({ text }) => text)
  if (last) return last.thought ? 'thought' : 'text'
  // ADK itself flushes text before any other part without inline data.
  return parts.every(({ inlineData }) => inlineData) ? textKind : undefined
}

/** Whether content follows buffered text, and ADK does not flush the text by itself. */
function endsText(
  textKind: 'text' | 'thought',
  { modelTurn, outputTranscription }: LiveServerContent,
): boolean {
  if (outputTranscription?.text) return true
  const files = (modelTurn?.parts ?? []).filter(({ inlineData }) => inlineData)
  // The audio of a text may arrive between its pieces.
  return textKind === 'thought' ? files.length > 0 : files.some((part) => kindOf(part) !== 'audio')
}

function endsTranscript(content: LiveServerContent): boolean {
  const { outputTranscription, interrupted, turnComplete, generationComplete } = content
  return Boolean(outputTranscription?.finished || interrupted || turnComplete || generationComplete)
}

interface SplitMessage {
  /** The message that ADK receives. */
  readonly forAdk: LiveServerMessage | undefined
  readonly calls: readonly FunctionCall[]
  /** Calls of tools that the agent does not have. ADK would end the run. */
  readonly unknownCalls: readonly FunctionCall[]
}

/**
 * Splits a message that holds more than content. Calls become parts of the model's turn: ADK 2.0.0 holds a `toolCall` back until the turn
 * is complete, and most models complete it only after the response. Handles and `goAway` are removed: ADK would store a handle in the
 * session, where it gives access to the conversation.
 */
function splitMessage(message: LiveServerMessage, isTool: (name: string) => boolean): SplitMessage {
  const { serverContent, usageMetadata } = message
  const all = message.toolCall?.functionCalls ?? []
  const calls = all.filter(({ name }) => isTool(name ?? ''))
  const unknownCalls = all.filter((call) => !calls.includes(call))
  const callParts = calls.map((functionCall) => ({ functionCall }))
  const content =
    callParts.length === 0
      ? serverContent
      : {
          ...serverContent,
          modelTurn: {
            role: 'model',
            parts: [...(serverContent?.modelTurn?.parts ?? []), ...callParts],
          },
        }
  const fields = {
    ...(content && { serverContent: content }),
    ...(usageMetadata && { usageMetadata }),
  }
  const isEmpty = Object.keys(fields).length === 0
  return { forAdk: isEmpty ? undefined : toMessage(fields), calls, unknownCalls }
}

/** Whether ADK can receive a message unchanged. All audio, text and transcripts are such messages. */
function isContentOnly(message: LiveServerMessage): boolean {
  return (
    message.serverContent !== undefined &&
    message.toolCall === undefined &&
    message.toolCallCancellation === undefined &&
    message.sessionResumptionUpdate === undefined &&
    message.goAway === undefined
  )
}

/** Whether the fields that this library and ADK read have the right types. */
function isWellFormed({ serverContent, toolCall }: LiveServerMessage): boolean {
  const parts: unknown = serverContent?.modelTurn?.parts ?? []
  const calls: unknown = toolCall?.functionCalls ?? []
  return (
    Array.isArray(parts) && parts.every(isObject) && Array.isArray(calls) && calls.every(isObject)
  )
}

/** A server message without the SDK's getters, which ADK does not use. */
function toMessage(
  fields: Pick<LiveServerMessage, 'serverContent' | 'usageMetadata'>,
): LiveServerMessage {
  return fields as LiveServerMessage
}

function toText({ parts = [] }: Content): string {
  return parts.map(({ text, thought }) => (thought ? '' : (text ?? ''))).join('')
}

function toUnknownToolResult({ id, name }: FunctionCall): FunctionResponse {
  return {
    ...(id !== undefined && { id }),
    ...(name !== undefined && { name }),
    response: { error: `There is no tool ${name}.` },
  }
}
