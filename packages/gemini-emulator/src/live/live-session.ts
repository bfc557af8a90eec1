import type { Speech, Transcribe } from '../emulator-core.ts'
import type { Blob, Content, FunctionCall, FunctionResponse } from '../wire/content.ts'
import type { ClientMessage, RealtimeInput, Setup } from '../wire/live-messages.ts'
import { readClientMessage } from '../wire/live-messages.ts'
import type { AudioInput, SpeechEvent } from './audio-input.ts'
import { createAudioInput } from './audio-input.ts'
import type { CloseInfo, Connection, Frame } from './connection.ts'
import { CloseCode } from './connection.ts'
import { Conversation } from './conversation.ts'
import type { SetupContext } from './open-setup.ts'
import { openSetup } from './open-setup.ts'
import { isObject } from '../wire/proto-json.ts'

/** A Live connection that a test can inspect and control. */
export interface LiveSession {
  readonly id: string
  /** The path and query of the connection, without the key. */
  readonly path: string
  /** The setup of the client. `undefined` until it arrives. */
  readonly setup: Setup | undefined
  /** The latest frames of the client, oldest first. Media are replaced by their size. */
  readonly received: readonly Frame[]
  /** The latest frames of the server, oldest first. Media are replaced by their size. */
  readonly sent: readonly Frame[]
  /** The conversation so far. */
  readonly history: readonly Content[]
  /** Calls without a response. */
  readonly pendingCalls: readonly FunctionCall[]
  /** Responses to calls that were unknown, cancelled or completed. */
  readonly ignoredResponses: readonly FunctionResponse[]
  /** Whether a turn is running. */
  readonly speaking: boolean
  readonly closed: CloseInfo | undefined
  /** Resolves when the connection has ended. */
  readonly ended: Promise<CloseInfo>
  /** Sends a server message unchanged. */
  send(message: Frame): void
  /** Sends any text, which need not be JSON. It is not added to `sent`. */
  sendText(text: string): void
  /** Has the effect of a barge-in: interrupts the model and cancels pending blocking calls. */
  interrupt(): void
  close(code: number, reason: string): void
  /** Resets the TCP connection. */
  drop(): void
  /** Sends `goAway` and closes the connection after that time. */
  goAway(timeLeftMs: number): void
  /** Returns the first matching frame of the client, recorded or future. Rejects when the session ends or the signal aborts. */
  waitFor(predicate: (frame: Frame) => boolean, signal?: AbortSignal): Promise<Frame>
  /** Like `waitFor`, for frames of the server. */
  waitForSent(predicate: (frame: Frame) => boolean, signal?: AbortSignal): Promise<Frame>
}

interface SessionContext extends SetupContext {
  readonly connection: Connection
  readonly path: string
  readonly transcribe: Transcribe
  readonly onReady: (session: LiveSession) => void
}

/** The parts of a session whose setup is complete. */
interface OpenSession {
  readonly conversation: Conversation
  readonly audioInput: AudioInput
}

/** The time that `goAway` leaves before a connection has reached its lifetime. */
const MAX_NOTICE_MS = 60_000

/** Reads the frames of one client and passes them to its conversation. */
export class HostedSession implements LiveSession {
  readonly id: string
  readonly path: string
  setup: Setup | undefined
  readonly #context: SessionContext
  readonly #connection: Connection
  #open: OpenSession | undefined
  #processed = 0

  constructor(context: SessionContext) {
    this.#context = context
    this.#connection = context.connection
    this.id = context.core.newId()
    this.path = context.path
  }

  get received() {
    return this.#connection.received.frames
  }

  get sent() {
    return this.#connection.sent.frames
  }

  get history() {
    return this.#open?.conversation.state.history ?? []
  }

  get pendingCalls() {
    const calls = this.#open?.conversation.state.calls ?? []
    return calls.filter(({ response }) => !response).map(({ call }) => call)
  }

  get ignoredResponses() {
    return this.#open?.conversation.ignoredResponses ?? []
  }

  get speaking() {
    return (
      this.#open?.conversation.state.turn.state === 'speaking' && !this.#connection.signal.aborted
    )
  }

  get closed() {
    return this.#connection.closed
  }

  get ended() {
    return this.#connection.ended
  }

  send(message: Frame) {
    this.#connection.send(message)
  }

  sendText(text: string) {
    this.#connection.sendText(text)
  }

  interrupt() {
    this.#open?.conversation.dispatch({ type: 'speech-start' })
    // The person has said nothing.
    this.#open?.conversation.dispatch({ type: 'transcript', text: '', ms: 0 })
  }

  close(code: number, reason: string) {
    this.#connection.close(code, reason)
  }

  drop() {
    this.#connection.drop()
  }

  goAway(timeLeftMs: number) {
    this.#connection.send({ goAway: { timeLeft: `${timeLeftMs / 1000}s` } })
    this.#context.core.pause(timeLeftMs, this.#connection.signal).then(
      () => this.close(CloseCode.GoingAway, 'The connection is going away.'),
      // The client disconnected in time.
      () => undefined,
    )
  }

  waitFor(predicate: (frame: Frame) => boolean, signal?: AbortSignal) {
    return this.#connection.received.waitFor(predicate, signal)
  }

  waitForSent(predicate: (frame: Frame) => boolean, signal?: AbortSignal) {
    return this.#connection.sent.waitFor(predicate, signal)
  }

  /** Handles one frame of the client. */
  receive(text: string) {
    if (this.#connection.signal.aborted) return
    try {
      this.#receive(text)
    } catch (error) {
      // For example `transcribe` throws, or the JSON is nested too deeply. Only this session ends.
      this.#fail(error)
    }
  }

  #receive(text: string) {
    const payload = parseJson(text)
    if (!isObject(payload)) {
      return this.#reject('Invalid JSON payload received. Expected an object.')
    }
    const message = readClientMessage(payload)
    const isFirst = this.setup === undefined
    if (message.type === 'invalid') {
      this.#reject(message.reason)
    } else if (isFirst !== (message.type === 'setup')) {
      this.#reject('setup must be the first message of a session, and only the first.')
    } else {
      this.#handle(message)
      this.#processed += 1
    }
    // Recorded last, so that the effects of a frame are visible to a test that waits for it.
    this.#connection.received.record(payload)
  }

  #handle(message: ClientMessage) {
    if (message.type === 'setup') return this.#setUp(message.setup)
    if (!this.#open) return
    const { conversation } = this.#open
    switch (message.type) {
      case 'client-content': {
        const { turns = [], turnComplete = false } = message.content
        return conversation.dispatch({ type: 'content', turns, turnComplete })
      }
      case 'realtime-input':
        return this.#handleRealtimeInput(message.input, this.#open)
      case 'tool-response': {
        const { functionResponses: responses = [] } = message.response
        return conversation.dispatch({ type: 'tool-responses', responses })
      }
      case 'context-update':
        return conversation.updateContext(message.update)
    }
  }

  #setUp(setup: Setup) {
    this.setup = setup
    const { settings, onReady } = this.#context
    const result = openSetup(setup, this.#context)
    if (result.type === 'rejected') return this.close(result.code, result.reason)
    if (!settings.completeSetup) return
    const { lineage } = result
    lineage.connection = this.#connection
    const conversation = new Conversation(result.state, {
      ...this.#context,
      setup,
      lineage,
      goAway: (timeLeftMs) => this.goAway(timeLeftMs),
      fail: (error) => this.#fail(error),
      processed: () => this.#processed,
    })
    this.#open = { conversation, audioInput: createAudioInput(setup, settings) }
    this.#connection.send({ setupComplete: {} })
    this.#endAfter(settings.lifetimeMs)
    onReady(this)
    conversation.start()
  }

  /** Announces the end of the connection, and closes it after its lifetime. */
  #endAfter(lifetimeMs: number) {
    const { core } = this.#context
    const { signal } = this.#connection
    const noticeMs = Math.min(MAX_NOTICE_MS, lifetimeMs / 2)
    const end = async () => {
      await core.pause(lifetimeMs - noticeMs, signal)
      this.#connection.send({ goAway: { timeLeft: `${noticeMs / 1000}s` } })
      await core.pause(noticeMs, signal)
      this.close(CloseCode.Internal, 'The session has reached its maximum duration.')
    }
    // The connection has ended before.
    end().catch(() => undefined)
  }

  #handleRealtimeInput(input: RealtimeInput, session: OpenSession) {
    const { conversation, audioInput } = session
    const { media = [], mediaChunks = [], audio, video, text } = input
    if (input.activityStart) this.#handleSpeech(audioInput.start(), conversation)
    for (const blob of [audio, video, media, mediaChunks].flat()) {
      if (blob) this.#handleMedia(blob, session)
    }
    if (text !== undefined) conversation.dispatch({ type: 'text', text })
    if (input.activityEnd) this.#handleSpeech(audioInput.end(), conversation)
    if (input.audioStreamEnd) this.#handleSpeech(audioInput.flush(), conversation)
  }

  #handleMedia(blob: Blob, { conversation, audioInput }: OpenSession) {
    const isImage = blob.mimeType?.startsWith('image/')
    if (isImage) conversation.dispatch({ type: 'video', frame: blob })
    else this.#handleSpeech(audioInput.push(blob), conversation)
  }

  #handleSpeech(events: readonly SpeechEvent[] | string, conversation: Conversation) {
    if (typeof events === 'string') return this.#reject(events)
    for (const event of events) {
      if (event.type === 'speech-start') conversation.dispatch(event)
      else this.#transcribe(event.speech, conversation)
    }
  }

  #transcribe(speech: Speech, conversation: Conversation) {
    const ms = (speech.pcm.length / 2 / speech.sampleRate) * 1000
    const addTranscript = (text: string) => conversation.dispatch({ type: 'transcript', text, ms })
    const text = this.#context.transcribe(speech, this.history)
    if (typeof text === 'string') return addTranscript(text)
    text.then(addTranscript, (error: unknown) => this.#fail(error))
  }

  #reject(reason: string) {
    this.close(CloseCode.InvalidArgument, reason)
  }

  #fail(error: unknown) {
    const message = error instanceof Error ? error.message : String(error)
    this.#context.core.log(`live ${this.id}: ${message}`)
    this.close(CloseCode.Internal, message)
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // No valid JSON parses to undefined.
    return undefined
  }
}
