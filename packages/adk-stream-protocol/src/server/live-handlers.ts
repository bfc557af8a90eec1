import { randomUUID } from 'node:crypto'

import type { Blob } from '@google/genai'

import { ProtocolError } from '../protocol/errors.ts'
import type { LiveWatcher } from '../live/live-room.ts'
import type { LiveRun } from '../live/live-run.ts'
import type { AudioMode } from '../transport/turn-readers.ts'
import type { ChatKey } from '../turns/turns.ts'
import { readDialect } from './chat-desk.ts'
import type { Connection, FrameHandlers } from './frame-handlers.ts'
import type { LiveRuns } from './live-runs.ts'
import type { LiveSource } from './live-source.ts'
import type { BridgeLimits } from './options.ts'
import { openTurnHandlers } from './turn-handlers.ts'

export interface LiveHandlersOptions {
  readonly runs: LiveRuns
  readonly source: LiveSource
  readonly limits: BridgeLimits
}

/** What Gemini Live hears. */
const MICROPHONE = 'audio/pcm;rate=16000'

/** Answers a socket from live conversations: a request is answered as turn by turn, and what is said and heard goes its way. */
export function openLiveHandlers(
  connection: Connection,
  { runs, source, limits }: LiveHandlersOptions,
): FrameHandlers {
  const presence = new Presence(connection, runs)
  const chatOf = (chatId: string): ChatKey => ({ principalId: connection.principal.id, chatId })
  const openForSound = (chatId: string): Promise<LiveRun> => {
    presence.enter(chatId)
    return runs.openForSound(chatOf(chatId))
  }
  const show = async (chatId: string, blob: Blob): Promise<void> =>
    (await openForSound(chatId)).show(blob)
  const turns = openTurnHandlers(connection, {
    source,
    limits,
    audioOf: (chatId) => presence.audioOf(chatId),
  })
  return {
    ...turns,
    send: (frame) => {
      presence.enter(frame.id)
      return turns.send(frame)
    },
    resume: (frame) => {
      presence.enter(frame.id)
      return turns.resume(frame)
    },
    watch: async ({ id, audio = 'base64' }) => {
      presence.watch(id, audio)
      await runs.open(chatOf(id))
    },
    unwatch: ({ id }) => presence.unwatch(id),
    text: async ({ id, messageId = randomUUID(), text }) => {
      presence.enter(id)
      const message = { id: messageId, parts: [{ type: 'text' as const, text }] }
      presence.show(id, await source.say(chatOf(id), { message, replaces: false, hold: true }))
    },
    audio: ({ id, data, mimeType }) => show(id, { data, mimeType }),
    image: ({ id, data, mimeType }) => show(id, toPicture(data, mimeType, limits)),
    binary: (bytes) => {
      const chatId = presence.speaking
      if (chatId === undefined) {
        const message = 'Send `watch` with `audio: "binary"` first: a binary frame names no chat.'
        throw new ProtocolError('bad-request', { message })
      }
      return show(chatId, { data: Buffer.from(bytes).toString('base64'), mimeType: MICROPHONE })
    },
    'audio-end': async ({ id }) => {
      // By the way that the sound went, and so after it. Where nobody was heard, there is nothing to end.
      if (runs.isTalking(chatOf(id))) (await openForSound(id)).endAudio()
    },
    activity: async ({ id, state }) => (await openForSound(id)).mark(state),
    interrupt: ({ id }) => runs.find(chatOf(id))?.interrupt(),
    join: (id) => presence.watch(id, 'base64'),
    close: () => {
      presence.leave()
      turns.close()
    },
  }
}

function toPicture(data: string, mimeType: string, { maxFileBytes }: BridgeLimits): Blob {
  if (!mimeType.toLowerCase().startsWith('image/')) {
    const message = 'A picture has a type that begins with `image/`. Send sound as `audio`.'
    throw new ProtocolError('bad-request', { message })
  }
  if (Buffer.byteLength(data, 'base64') > maxFileBytes) {
    const message = `A picture is larger than ${maxFileBytes} bytes. Send a smaller one.`
    throw new ProtocolError('too-large', { message })
  }
  return { data, mimeType }
}

/** How a client takes part in a chat. */
interface How {
  readonly audio: AudioMode
  readonly watches: boolean
  /** Whether it asked for something in it. */
  readonly speaks: boolean
}

/** One client in the chats that it takes part in. */
class Presence {
  readonly #connection: Connection
  readonly #runs: LiveRuns
  readonly #chats = new Map<string, How & { readonly leave: () => void }>()
  #left = false
  /** The chat that sound without a name belongs to. */
  speaking: string | undefined

  constructor(connection: Connection, runs: LiveRuns) {
    this.#connection = connection
    this.#runs = runs
  }

  audioOf(chatId: string): AudioMode {
    return this.#chats.get(chatId)?.audio ?? 'base64'
  }

  /** Takes part in a chat: its conversation is kept while somebody does. */
  enter(chatId: string): void {
    const known = this.#chats.get(chatId)
    if (known) this.#chats.set(chatId, { ...known, speaks: true })
    else this.#join(chatId, { audio: 'base64', watches: false, speaks: true })
  }

  /** Wants to hear of all that happens in a chat. */
  watch(chatId: string, audio: AudioMode): void {
    const known = this.#chats.get(chatId)
    known?.leave()
    this.#join(chatId, { audio, watches: true, speaks: known?.speaks ?? false })
    if (audio === 'binary') this.speaking = chatId
    else this.#hush(chatId)
  }

  /** Wants to hear no more of it. Who only looked on is gone; who said something still takes part. */
  unwatch(chatId: string): void {
    const known = this.#chats.get(chatId)
    this.#hush(chatId)
    known?.leave()
    this.#chats.delete(chatId)
    if (known?.speaks) this.enter(chatId)
  }

  /** Sends a turn that no request of this client asked for. */
  show(chatId: string, turn: Parameters<LiveWatcher['onTurn']>[0]): void {
    const { tell, read, exchange } = this.#connection
    const requestId = `turn-${randomUUID()}`
    tell({ type: 'turn', id: chatId, requestId, messageId: turn.messageId })
    read(requestId, turn, {
      from: 'start',
      dialect: readDialect(exchange),
      audio: this.audioOf(chatId),
    })
  }

  leave(): void {
    this.#left = true
    for (const { leave } of this.#chats.values()) leave()
    this.#chats.clear()
  }

  #hush(chatId: string): void {
    if (this.speaking === chatId) this.speaking = undefined
  }

  #join(chatId: string, how: How): void {
    // A frame that is still worked on when its socket is gone brings nobody back.
    if (this.#left) return
    const chat = { principalId: this.#connection.principal.id, chatId }
    const watcher = how.watches ? this.#watcher(chatId) : SILENT
    this.#chats.set(chatId, { ...how, leave: this.#runs.watch(chat, watcher) })
  }

  #watcher(id: string): LiveWatcher {
    const { tell } = this.#connection
    return {
      onTurn: (turn) => this.show(id, turn),
      onHeard: (message) => tell({ type: 'user-message', id, message }),
      onTranscript: ({ text, final }) =>
        tell({ type: 'transcript', id, author: 'user', text, final }),
      onInterrupted: () => tell({ type: 'interrupted', id }),
      onStatus: (status) => tell({ type: 'status', id, status }),
    }
  }
}

const SILENT: LiveWatcher = {
  onTurn: () => undefined,
  onHeard: () => undefined,
  onTranscript: () => undefined,
  onInterrupted: () => undefined,
  onStatus: () => undefined,
}
