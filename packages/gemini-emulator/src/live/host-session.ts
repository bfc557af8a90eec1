import type { Blob } from '../wire/content.ts'
import {
  readClientMessage,
  type ClientMessage,
  type RealtimeInput,
  type Setup,
} from '../wire/live-messages.ts'
import type { Speech, Transcribe } from '../world.ts'
import { CloseCode } from './close-code.ts'
import { Conversation } from './conversation.ts'
import type { Hearing } from './ear.ts'
import type { Frame } from './frame-log.ts'
import type { LiveSession } from './live-session.ts'
import { createMicrophone, type Microphone } from './microphone.ts'
import { openSetup, type SetupContext } from './open-setup.ts'
import type { Connection } from './connection.ts'

export interface HostContext extends SetupContext {
  readonly connection: Connection
  readonly path: string
  /** Says what was spoken. */
  readonly transcribe: Transcribe
  readonly onReady: (session: LiveSession) => void
}

/** What a session has once its setup is complete. */
interface Talk {
  readonly conversation: Conversation
  readonly microphone: Microphone
}

/** The shell around one session: reads the client's frames and hands them to the conversation. */
export class HostedSession implements LiveSession {
  readonly id: string
  readonly path: string
  setup: Setup | undefined
  readonly #context: HostContext
  readonly #connection: Connection
  #talk: Talk | undefined
  #consumed = 0

  constructor(context: HostContext) {
    this.#context = context
    this.#connection = context.connection
    this.id = context.world.newId()
    this.path = context.path
  }

  get received() {
    return this.#connection.received.frames
  }

  get sent() {
    return this.#connection.sent.frames
  }

  get history() {
    return this.#talk?.conversation.state.history ?? []
  }

  get pendingCalls() {
    const calls = this.#talk?.conversation.state.calls ?? []
    return calls.filter(({ answer }) => !answer).map(({ call }) => call)
  }

  get ignoredResponses() {
    return this.#talk?.conversation.ignoredResponses ?? []
  }

  get speaking() {
    return (
      this.#talk?.conversation.state.turn.state === 'speaking' && !this.#connection.signal.aborted
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
    this.#talk?.conversation.apply({ type: 'speech-start' })
  }

  close(code: number, reason: string) {
    this.#connection.close(code, reason)
  }

  drop() {
    this.#connection.drop()
  }

  goAway(timeLeftMs: number) {
    this.#connection.send({ goAway: { timeLeft: `${timeLeftMs / 1000}s` } })
    this.#context.world.pause(timeLeftMs, this.#connection.signal).then(
      () => this.close(CloseCode.GoingAway, 'The connection is going away.'),
      // The client left in time.
      () => undefined,
    )
  }

  waitFor(predicate: (frame: Frame) => boolean, signal?: AbortSignal) {
    return this.#connection.received.waitFor(predicate, signal)
  }

  waitForSent(predicate: (frame: Frame) => boolean, signal?: AbortSignal) {
    return this.#connection.sent.waitFor(predicate, signal)
  }

  /** Takes one frame of the client. */
  take(text: string) {
    if (this.#connection.signal.aborted) return
    try {
      this.#take(text)
    } catch (error) {
      // A transcriber that throws, a frame nested too deep to be read: one session ends, the emulator goes on.
      this.#fail(error)
    }
  }

  #take(text: string) {
    const payload = parseJson(text)
    if (!isObject(payload)) {
      return this.#refuse('Invalid JSON payload received. Expected an object.')
    }
    const message = readClientMessage(payload)
    const first = this.setup === undefined
    if (message.type === 'refused') {
      this.#refuse(message.reason)
    } else if (first !== (message.type === 'setup')) {
      this.#refuse('setup must be the first message of a session, and only the first.')
    } else {
      this.#consume(message)
      this.#consumed += 1
    }
    // Last, so that whoever waits for a frame finds what it brought about.
    this.#connection.received.record(payload)
  }

  #consume(message: ClientMessage) {
    if (message.type === 'setup') return this.#open(message.setup)
    if (!this.#talk) return
    const { conversation } = this.#talk
    switch (message.type) {
      case 'client-content': {
        const { turns = [], turnComplete = false } = message.content
        return conversation.apply({ type: 'content', turns, turnComplete })
      }
      case 'realtime-input':
        return this.#sense(message.input, this.#talk)
      case 'tool-response': {
        const { functionResponses: responses = [] } = message.response
        return conversation.apply({ type: 'answers', responses })
      }
      case 'context-update':
        return conversation.reconfigure(message.update)
    }
  }

  #open(setup: Setup) {
    this.setup = setup
    const { settings, onReady } = this.#context
    const opening = openSetup(setup, this.#context)
    if (opening.type === 'refused') return this.close(opening.code, opening.reason)
    if (!settings.completeSetup) return
    const conversation = new Conversation(opening.state, {
      ...this.#context,
      setup,
      goAway: (timeLeftMs) => this.goAway(timeLeftMs),
      fail: (error) => this.#fail(error),
      consumed: () => this.#consumed,
    })
    this.#talk = { conversation, microphone: createMicrophone(setup, settings) }
    this.#connection.send({ setupComplete: {} })
    onReady(this)
    conversation.begin()
  }

  #sense(input: RealtimeInput, talk: Talk) {
    const { conversation, microphone } = talk
    const { media = [], mediaChunks = [], audio, video, text } = input
    if (input.activityStart) this.#hear(microphone.start(), conversation)
    for (const blob of [audio, video, media, mediaChunks].flat()) {
      if (blob) this.#perceive(blob, talk)
    }
    if (text !== undefined) conversation.apply({ type: 'text', text })
    if (input.activityEnd) this.#hear(microphone.end(), conversation)
    if (input.audioStreamEnd) this.#hear(microphone.flush(), conversation)
  }

  #perceive(blob: Blob, { conversation, microphone }: Talk) {
    const isImage = blob.mimeType?.startsWith('image/')
    if (isImage) conversation.apply({ type: 'video', frame: blob })
    else this.#hear(microphone.listen(blob), conversation)
  }

  #hear(hearings: readonly Hearing[] | string, conversation: Conversation) {
    if (typeof hearings === 'string') return this.#refuse(hearings)
    for (const hearing of hearings) {
      if (hearing.type === 'speech-start') conversation.apply(hearing)
      else this.#understand(hearing.speech, conversation)
    }
  }

  #understand(speech: Speech, conversation: Conversation) {
    const ms = (speech.pcm.length / 2 / speech.sampleRate) * 1000
    const heard = (text: string) => conversation.apply({ type: 'heard', text, ms })
    const text = this.#context.transcribe(speech, this.history)
    if (typeof text === 'string') return heard(text)
    text.then(heard, (error: unknown) => this.#fail(error))
  }

  #refuse(reason: string) {
    this.close(CloseCode.InvalidArgument, reason)
  }

  #fail(error: unknown) {
    const message = error instanceof Error ? error.message : String(error)
    this.#context.world.log(`live ${this.id}: ${message}`)
    this.close(CloseCode.Internal, message)
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // Nothing that is JSON parses to undefined.
    return undefined
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
