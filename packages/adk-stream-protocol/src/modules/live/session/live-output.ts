import { randomUUID } from 'node:crypto'

import type { BaseTool, Event } from '@google/adk'
import { createEvent } from '@google/adk'
import type { Content, FinishReason, Part } from '@google/genai'

import { toRepliedNote } from '../../../agent/call-responses.ts'
import { writeNotes } from '../../../agent/events/event-notes.ts'
import { createFailureEvent } from '../../../agent/translate/failure-event.ts'
import { isPcm } from '../../../agent/translate/count-usage.ts'
import { readReplyEnd } from '../../../agent/translate/model-outcome.ts'
import type { Approval } from '../../../approvals/approval.ts'
import { asClientTool } from '../../../calls/client-tool.ts'
import { toClientError } from '../gemini/gemini-socket.ts'
import type { LiveMark } from '../gemini/message-receiver.ts'
import { toProtocolError } from '../../../protocol/errors.ts'
import { LiveMessage } from './live-message.ts'
import type { LiveMessages } from './live-message.ts'
import type { LiveListener } from './live-watchers.ts'
import type { SessionWriter } from './session-writer.ts'
import type { TurnTaking } from './turn-taking.ts'
import { transcriptOf } from './user-speech.ts'

/** What the output needs of its conversation. */
interface LiveOutputOptions {
  readonly turnTaking: TurnTaking<LiveMessage>
  readonly messages: LiveMessages
  readonly session: SessionWriter
  readonly listener: LiveListener
  /** Whether the model continues to speak while its calls wait. */
  readonly hasNonBlockingCalls: boolean
  /** Whether the model has received audio or images, so that the person may have spoken. */
  readonly hasHeard: boolean
  /** Finds a tool that the model knows. */
  findTool(name: string): BaseTool | undefined
  /** A turn of the model has ended. */
  onTurnEnd(): void
  /** The author of failures. */
  readonly agentName: string
  readonly onError: (error: unknown) => void
  /** Receives a piece of the transcript of the user's speech. The last piece (`isFinished`) repeats the whole transcript. */
  onSpeech(text: string, isFinished: boolean): void
}

/** Assigns the events of a live run to messages, and converts and streams them. */
export class LiveOutput {
  readonly #options: LiveOutputOptions
  /** The message of the event that ADK yields next. */
  #target: LiveMessage | undefined
  /** The messages of sources. Created with the first ones. */
  #sources: WeakMap<object, LiveMessage> | undefined
  /** How many interruptions there were before a piece of audio. Created with the first audio. */
  #audio: WeakMap<Part, number> | undefined
  /** The information that ADK drops, by the part that marks its place. Created with the first one. */
  #marks: WeakMap<Part, LiveMark> | undefined
  /** The message of the model's last turn. */
  #lastMessage: LiveMessage | undefined
  /** Why the model's current turn ends. */
  #turnReason: string | undefined
  #interruptions = 0
  /** Turns that were cut off by a lost connection, and whose end ADK has not yielded yet. */
  #cutOffTurns = 0
  /** Errors of dropped messages that wait for the end of cut-off turns. */
  readonly #dropErrors: unknown[] = []

  constructor(options: LiveOutputOptions) {
    this.#options = options
  }

  /**
   * Records audio that ADK yields later. An interruption is reported at once, while audio still waits in ADK's queue. The queue does not
   * mark the audio, but it keeps the same `Part` objects.
   */
  recordAudio(parts: readonly Part[]): void {
    for (const part of parts) {
      if (!part.inlineData) continue
      this.#audio ??= new WeakMap()
      this.#audio.set(part, this.#interruptions)
    }
  }

  /** Records information that ADK drops. ADK yields the part later. */
  recordMark(part: Part, mark: LiveMark): void {
    this.#marks ??= new WeakMap()
    this.#marks.set(part, mark)
  }

  /** The model was interrupted. */
  interrupt(): void {
    this.#interruptions += 1
    this.#options.listener.onInterrupted()
  }

  /** The connection was lost during a turn of the model. */
  cutOff(): void {
    this.#cutOffTurns += 1
  }

  /** Fails the reply to a message that could not be sent, after the output that ADK has not yielded yet. */
  drop(error: unknown): void {
    this.#options.onError(error)
    if (this.#cutOffTurns > 0) this.#dropErrors.push(error)
    else this.#failNextReply(error)
  }

  /** Finds the message that an event belongs to, and converts the event into its stored form. */
  async prepare(event: Event): Promise<Event> {
    const { turnTaking } = this.#options
    const kind = kindOf(event)
    this.#target = undefined
    if (kind === 'user-transcript') return withoutStoring(event)
    const mark = this.#marks?.get(event.content?.parts?.[0] ?? NO_PART)
    if (mark) {
      this.#applyMark(mark)
      return withoutStoring(event)
    }
    if (kind === 'turn-end') return this.#prepareTurnEnd(event)
    const isOutput = kind === 'output' || kind === 'audio' || kind === 'call'
    const message = isOutput ? this.#receiveOutput() : turnTaking.speaker
    this.#target = message
    if (!message || message.isStopped) return withoutStoring(event)
    if (isOutput) message.hasOutput = true
    return kind === 'audio' ? event : this.#prepareOutput(event, kind, message)
  }

  async #prepareOutput(event: Event, kind: EventKind, message: LiveMessage): Promise<Event> {
    if (kind === 'call') endRepetition(message)
    const news = kind === 'output' ? withoutRepeated(event, message) : event
    if (!news) this.#target = undefined
    if (!news) return withoutStoring(event)
    if (event.partial) return news
    await this.storeUserSpeech(message)
    const prepared = toStoredEvent(this.#withOwnSources(news, message), message, (name) =>
      this.#options.findTool(name),
    )
    // ADK does not store pictures and other files of a live model. Clients show them, so they must be stored (LV16).
    if (isUnstoredMedia(prepared)) await this.#options.session.append(prepared)
    return prepared
  }

  #applyMark(mark: LiveMark): void {
    if (mark.type === 'turn-ending') {
      this.#turnReason = mark.reason
      return
    }
    const { turnTaking, hasNonBlockingCalls } = this.#options
    const { toolCallIds } = mark
    const message = this.#receiveOutput()
    if (!hasNonBlockingCalls) turnTaking.apply({ type: 'calls-made', toolCallIds })
    for (const toolCallId of toolCallIds)
      turnTaking.apply({ type: 'result-sent', toolCallId, message })
  }

  /** Returns the end of the model's turn, in its stored form if it has sources of its message, or says how its message ended. */
  async #prepareTurnEnd(event: Event): Promise<Event> {
    const { turnTaking } = this.#options
    const message = turnTaking.current
    const reason = this.#turnReason
    this.#turnReason = undefined
    const isCut = event.interrupted === true || !message
    const finishReason = isCut ? undefined : this.#findReplyEnd(message, reason)
    const hasSources = this.#hasOwnSources(event, turnTaking.speaker)
    if (!message || message.isStopped || (finishReason === undefined && !hasSources))
      return withoutStoring(event)
    this.#target = message
    await this.storeUserSpeech(message)
    const own = this.#withOwnSources(event, message)
    const findTool = this.#options.findTool.bind(this.#options)
    return toStoredEvent(withReplyEnd(own, finishReason), message, findTool)
  }

  /**
   * Returns the reason to store for a reply that ends with this turn. A reply that is complete needs none, unless it is empty, or ends
   * with a result: the stored turn would look like one that is to be continued (AP1948).
   */
  #findReplyEnd(message: LiveMessage, reason = 'STOP'): string | undefined {
    if (!this.#options.turnTaking.isLastTurnOf(message)) return undefined
    const isEmpty = !message.hasOutput && message.turn !== undefined
    return isEmpty || readReplyEnd(reason).finishReason !== 'stop' ? reason : undefined
  }

  /** Streams an event that ADK has yielded. */
  handle(event: Event): void {
    const { messages, listener } = this.#options
    messages.resetIdleTimer()
    const message = this.#target
    const kind = kindOf(event)
    if (kind === 'user-transcript') {
      const { text = '', finished = false } = event.inputTranscription ?? {}
      listener.onTranscript({ text, final: finished })
      return this.#options.onSpeech(text, finished)
    }
    if (message) this.#recordCalls(message, event)
    // After `interrupted`, clients receive no audio from before it (LV41).
    const isStale = kind === 'audio' && this.#isStale(event.content?.parts ?? [])
    if (message && !message.isStopped && !isStale) messages.stream(message, event)
    if (kind === 'turn-end') this.#endTurn(event)
  }

  #endTurn({ interrupted }: Event): void {
    const { turnTaking, messages } = this.#options
    if (interrupted === true && this.#cutOffTurns > 0) {
      this.#cutOffTurns -= 1
      const isRepeated = turnTaking.isReplying
      if (isRepeated && turnTaking.speaker) restartReply(turnTaking.speaker)
      turnTaking.apply({ type: 'turn-cut-off' })
      if (this.#cutOffTurns === 0 && this.#dropErrors.length > 0) {
        for (const error of this.#dropErrors.splice(0)) this.#failNextReply(error)
        return
      }
      if (isRepeated) return
    }
    const message = this.#completeTurn()
    if (message) messages.closeIfDone(message)
  }

  /** Ends the model's turn. Returns the message that it belonged to. */
  #completeTurn(): LiveMessage | undefined {
    const { turnTaking } = this.#options
    const message = turnTaking.current
    if (message) endRepetition(message)
    this.#lastMessage = message ?? this.#lastMessage
    turnTaking.apply({ type: 'turn-completed' })
    this.#options.onTurnEnd()
    return message
  }

  #failNextReply(error: unknown): void {
    const message = this.#completeTurn()
    if (!message) return
    const failure = toClientError(error)
    void this.storeFailure([message], failure)
    message.fail(failure)
    this.#options.messages.closeIfDone(message)
  }

  /** Stores how replies failed. Never rejects. */
  async storeFailure(messages: readonly LiveMessage[], failure: unknown): Promise<void> {
    const { session, agentName, onError } = this.#options
    try {
      for (const message of messages) {
        await this.storeUserSpeech(message)
        const { messageId } = message
        await session.append(createFailureEvent(messageId, agentName, toProtocolError(failure)))
      }
    } catch (error) {
      onError(error)
    }
  }

  /** LV1961: ends replies that the model has not completed. Their turns store what they have streamed. Never rejects. */
  async endUnfinished(messages: readonly LiveMessage[]): Promise<void> {
    const { session, agentName: author, onError } = this.#options
    const { invocationId = '' } = session.context ?? {}
    for (const message of messages) {
      await this.storeUserSpeech(message).catch(onError)
      message.push(createEvent({ author, invocationId, interrupted: true }))
    }
  }

  /** Records every call, also those of a stopped reply: the model expects a result for each. */
  #recordCalls(message: LiveMessage, { content, partial = false }: Event): void {
    const { messages, turnTaking, hasNonBlockingCalls } = this.#options
    const toolCallIds = (content?.parts ?? []).flatMap(({ functionCall }) =>
      functionCall?.id !== undefined && this.#options.findTool(functionCall.name ?? '')
        ? functionCall.id
        : [],
    )
    messages.addCalls(message, toolCallIds, partial)
    if (!hasNonBlockingCalls) turnTaking.apply({ type: 'calls-made', toolCallIds })
  }

  /**
   * Returns the message that new output belongs to. Without a pending message, it is a new one if the person may have spoken and the
   * transcript has not arrived yet, and the last one otherwise (LV1081).
   */
  #receiveOutput(): LiveMessage {
    const { turnTaking } = this.#options
    turnTaking.apply({ type: 'output-received' })
    const { speaker } = turnTaking
    if (speaker) return speaker
    const message = (this.#options.hasHeard ? undefined : this.#lastMessage) ?? new LiveMessage()
    turnTaking.apply({ type: 'unprompted-output-received', message })
    return message
  }

  /** Stores the user's speech as a message, before the reply to it. */
  async storeUserSpeech(message: LiveMessage): Promise<void> {
    if (message.isUserMessageStored) return message.storing
    message.isUserMessageStored = true
    message.storing = this.#appendSpeech(message)
    return message.storing
  }

  async #appendSpeech(message: LiveMessage): Promise<void> {
    const { session, listener, messages } = this.#options
    if (!messages.isOtherBusy(message)) await session.endUncontinued()
    const text = transcriptOf(message)
    await session.append(toUserEvent(message, { role: 'user', parts: [{ text }] }))
    listener.onUserMessage({
      id: message.userMessageId,
      role: 'user',
      parts: [{ type: 'text', text }],
    })
  }

  /** Whether audio is from before an interruption. */
  #isStale(parts: readonly Part[]): boolean {
    return parts.some((part) => (this.#audio?.get(part) ?? Infinity) < this.#interruptions)
  }

  /** Whether an event carries sources of this message. New sources belong to it. */
  #hasOwnSources({ groundingMetadata }: Event, message: LiveMessage | undefined): boolean {
    if (!groundingMetadata || !message) return false
    return (this.#sources?.get(groundingMetadata) ?? message) === message
  }

  /** Removes the sources of earlier replies: ADK 2.0.0 repeats `groundingMetadata` in every later event. */
  #withOwnSources(event: Event, message: LiveMessage): Event {
    if (!event.groundingMetadata) return event
    if (this.#hasOwnSources(event, message)) {
      this.#sources ??= new WeakMap()
      this.#sources.set(event.groundingMetadata, message)
      return event
    }
    const { groundingMetadata: _, ...rest } = event
    return rest
  }
}

/** Removes from an output event what the message already has of a reply that starts again. Returns undefined if nothing is left. */
function withoutRepeated(event: Event, { said }: LiveMessage): Event | undefined {
  const { outputTranscription, content, partial = false } = event
  if (outputTranscription) {
    const { text = '' } = outputTranscription
    const news = partial ? said.text.takePiece(text) : said.text.takeWhole(text)
    if (news === text) return event
    if (news === '') return undefined
    return withFields(event, { outputTranscription: { ...outputTranscription, text: news } })
  }
  const parts = content?.parts ?? []
  const [first] = parts
  // The parts of an event with text are of one kind.
  if (typeof first?.text !== 'string') return event
  const text = parts.map((part) => part.text ?? '').join('')
  const before = first.thought ? said.thought : said.text
  const news = partial ? before.takePiece(text) : before.takeWhole(text)
  if (news === text) return event
  if (news === '') return undefined
  return withFields(event, { content: { ...content, parts: [{ ...first, text: news }] } })
}

function restartReply({ said }: LiveMessage): void {
  said.text.restart()
  said.thought.restart()
}

function endRepetition({ said }: LiveMessage): void {
  said.text.reset()
  said.thought.reset()
}

/** The part of an event that has none. */
const NO_PART: Part = {}

/** Adds how a reply ended, in the form in which ADK reports it over SSE. */
function withReplyEnd(event: Event, reason: string | undefined): Event {
  if (reason === undefined) return event
  // Gemini may report reasons that its types do not have.
  const finishReason = reason as FinishReason
  return withFields(event, { finishReason, ...(reason !== 'STOP' && { errorCode: reason }) })
}

/** `output` is text, a thought, a transcript of the model's speech, a file, code, or an error. `audio` is PCM audio. `other` carries metadata such as usage. */
type EventKind = 'user-transcript' | 'audio' | 'output' | 'call' | 'turn-end' | 'other'

/** Classifies an ADK event of a live run. */
function kindOf(event: Event): EventKind {
  if (event.inputTranscription) return 'user-transcript'
  if (event.turnComplete) return 'turn-end'
  const parts = event.content?.parts ?? []
  if (parts.some(({ inlineData }) => isPcm(inlineData?.mimeType ?? ''))) return 'audio'
  if (parts.some(({ functionCall }) => functionCall)) return 'call'
  if (parts.length > 0 || event.outputTranscription || event.errorCode) return 'output'
  return 'other'
}

/**
 * Returns an event in the form in which it is stored and streamed: a transcript becomes text, because ADK stores it where no model reads
 * it; the event names its message; and only calls that a client runs are long-running, because ADK marks every call of a live run so.
 */
function toStoredEvent(
  event: Event,
  { messageId, audio }: Pick<LiveMessage, 'messageId' | 'audio'>,
  findTool: (name: string) => BaseTool | undefined,
): Event {
  if (event.partial) return event
  // In a stored event, `interrupted` means that the user stopped the reply.
  const { interrupted: _, ...whole } = event
  const customMetadata = writeNotes(
    audio ? { messageId, audio } : { messageId },
    event.customMetadata,
  )
  if (whole.outputTranscription) {
    const { outputTranscription, ...rest } = whole
    const content = { role: 'model', parts: [{ text: outputTranscription.text ?? '' }] }
    return withFields(rest, { content, customMetadata })
  }
  const longRunningToolIds = (whole.content?.parts ?? []).flatMap(({ functionCall }) => {
    const tool = functionCall && findTool(functionCall.name ?? '')
    return tool && asClientTool(tool) ? (functionCall.id ?? []) : []
  })
  if (longRunningToolIds.length === 0)
    return withFields(whole, { customMetadata, longRunningToolIds })
  const noted = writeNotes({ unchecked: longRunningToolIds }, customMetadata)
  return withFields(whole, { customMetadata: noted, longRunningToolIds })
}

/** Marks an event so that ADK yields it and does not store it. */
function withoutStoring(event: Event): Event {
  return withFields(event, { partial: true })
}

// A spread of an object that rest properties made, as ADK's events are, gives each copy a hidden class of its own, which
// takes 600 bytes.
function withFields(event: Event, fields: Partial<Event>): Event {
  return Object.assign({}, event, fields)
}

/** Creates the event of a user message, in the form that ADK gives it over SSE. */
export function toUserEvent(
  { messageId, userMessageId, state }: LiveMessage,
  content: Content,
): Event {
  return createEvent({
    actions: { stateDelta: { ...state } },
    author: 'user',
    invocationId: randomUUID(),
    content,
    customMetadata: writeNotes({ messageId, userMessageId }),
  })
}

/** Creates the event that says which approval a user message has decided. */
export function toRepliedEvent(
  { messageId }: LiveMessage,
  author: string,
  approval: Approval,
): Event {
  const replied = toRepliedNote(approval)
  const customMetadata = writeNotes({ messageId, replied })
  return createEvent({ author, invocationId: randomUUID(), customMetadata })
}

const UNSTORED = /^(?:image|audio|video)\//i

/** Whether ADK 2.0.0 does not store an event of a live run because it contains media. */
function isUnstoredMedia({ content, partial = false }: Event): boolean {
  if (partial) return false
  return (
    content?.parts?.some(({ inlineData }) => UNSTORED.test(inlineData?.mimeType ?? '')) === true
  )
}
