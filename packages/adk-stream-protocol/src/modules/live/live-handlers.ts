import { randomUUID } from 'node:crypto'

import type { Blob } from '@google/genai'

import type { LiveConversation } from './session/live-conversation.ts'
import type { LiveWatcher } from './session/live-watchers.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import type { Message } from '../../protocol/message.ts'
import { checkFileSize, checkFileType, checkText } from '../../protocol/stream-request.ts'
import type { ChatRef } from '../../shared/chat-ref.ts'
import type { Turn } from '../../turns/turn.ts'
import type { ChatService } from '../../server/chats/chat-service.ts'
import type { ApprovalDecisions } from '../../server/chats/decisions/approval-decisions.ts'
import type { LiveRuns } from './live-runs.ts'
import type { LiveSender } from './live-sender.ts'
import type { LiveSpeaker } from './live-speakers.ts'
import { checkDecidedAs } from '../../server/auth/authenticate.ts'
import { readAgent } from '../../server/http/exchange.ts'
import type { BridgeLimits } from '../../server/settings/limits.ts'
import type { Connection, FrameHandlers, OpenRunFrame } from '../../server/sockets/connection.ts'
import { openTurnHandlers } from '../../server/sockets/frame-handlers.ts'
import type { AudioMode } from '../../server/sockets/turn-readers.ts'

interface LiveHandlersOptions {
  readonly runs: LiveRuns
  readonly chats: ChatService
  readonly decisions: Pick<ApprovalDecisions, 'decide'>
  readonly live: LiveSender
  readonly limits: BridgeLimits
}

/** The audio format that Gemini Live accepts. */
const MICROPHONE = 'audio/pcm;rate=16000'

/** Creates the handlers of a socket with live sessions. They extend the handlers for turns by text, audio and images. */
export function openLiveHandlers(
  connection: Connection,
  options: LiveHandlersOptions,
): FrameHandlers {
  const { runs, chats, live, limits } = options
  const subscriptions = new ChatSubscriptions(connection, runs, limits.maxLiveChatsPerPrincipal)
  const chatOf = (chatId: string): ChatRef => ({ principalId: connection.principal.id, chatId })
  const speech = openSpeech(connection, options, subscriptions)
  const audioOf = (chatId: string) => subscriptions.audioOf(chatId)
  const turns = openTurnHandlers(connection, { ...options, toRun: live.send, audioOf })
  return {
    ...turns,
    send: (frame) => subscriptions.whileBusy(frame.id, async () => turns.send(frame)),
    resume: (frame) => subscriptions.whileBusy(frame.id, async () => turns.resume(frame)),
    watch: async ({ id, audio = 'base64', agent }) => {
      subscriptions.watch(id, audio)
      try {
        runs.allowSpeech(chatOf(id), subscriptions.speakerOf(id))
        await runs.join(chatOf(id), speech.prepare(id, agent))
      } catch (error) {
        subscriptions.unwatch(id)
        throw error
      }
    },
    unwatch: ({ id }) => subscriptions.unwatch(id),
    text: async ({ id, messageId = randomUUID(), text, agent, openApprovals, decidedAs }) => {
      checkDecidedAs(connection.principal, decidedAs)
      const message = { id: messageId, parts: [checkText(text, limits)] }
      const agentRequest = { named: agent, ...readAgent(connection.exchange()) }
      const shown = openApprovals && { openApprovals }
      const request = { message, replaces: false, hold: true, ...shown, ...agentRequest }
      // WS16: a message that may decide is authenticated again.
      const principal = chats.mayDecide(message)
        ? await connection.checkPrincipal()
        : connection.principal
      subscriptions.show(
        id,
        await subscriptions.whileBusy(id, () => live.send(principal, chatOf(id), request)),
      )
    },
    audio: ({ id, data, mimeType }) => speech.hear(id, toAudio(data, mimeType)),
    image: async ({ id, data, mimeType }) => {
      const image = toImage(data, mimeType, limits)
      const run = await speech.open(id)
      run?.sendMedia(image)
    },
    binary: (bytes) => {
      const chatId = subscriptions.audioChatId
      if (chatId === undefined) {
        const message = 'Send `watch` with `audio: "binary"` first: a binary frame has no chat id.'
        throw new ProtocolError('bad-request', { message })
      }
      return speech.hear(chatId, {
        data: Buffer.from(bytes).toString('base64'),
        mimeType: MICROPHONE,
      })
    },
    'audio-end': async ({ id }) => {
      // Sent through the same queue as the audio, so that it arrives after it. Without a session there is no audio to end.
      const isHeard = runs.endSpeech(chatOf(id), subscriptions.speakerOf(id))
      if (isHeard && runs.isTalking(chatOf(id))) (await speech.open(id))?.input.endAudio()
    },
    activity: async ({ id, state }) => {
      if (state === 'start') runs.allowSpeech(chatOf(id), subscriptions.speakerOf(id))
      ;(await speech.openAsSpeaker(id))?.input.sendActivity(state)
    },
    interrupt: ({ id }) => runs.find(chatOf(id))?.interrupt(),
    join: (id) => subscriptions.watch(id, 'base64'),
    busy: () => subscriptions.busy,
    close: () => {
      subscriptions.leave()
      turns.close()
    },
  }
}

/** The handlers of the same frames on a server without live sessions. */
export function refuseLiveFrames(): Pick<FrameHandlers, OpenRunFrame> {
  return {
    text: refuseFrame,
    audio: refuseFrame,
    'audio-end': refuseFrame,
    image: refuseFrame,
    activity: refuseFrame,
    interrupt: refuseFrame,
    watch: refuseFrame,
    unwatch: refuseFrame,
    binary: refuseFrame,
  }
}

function refuseFrame(): never {
  throw new ProtocolError('not-live')
}

/** How the audio of one socket reaches live sessions. */
interface Speech {
  /** Returns a function that sets the agent and the session state, before a live session starts without a text message. */
  readonly prepare: (chatId: string, named?: string) => () => Promise<void>
  /** Returns the live session of a chat for media. Returns undefined if another process has it. */
  readonly open: (chatId: string) => Promise<LiveConversation | undefined>
  /** Like `open`, for speech. Returns undefined also if another device of the chat speaks. */
  readonly openAsSpeaker: (chatId: string) => Promise<LiveConversation | undefined>
  /** Sends audio. What the person says may decide an approval. */
  readonly hear: (chatId: string, blob: Blob) => Promise<void>
}

function openSpeech(
  connection: Connection,
  { runs, live }: LiveHandlersOptions,
  subscriptions: ChatSubscriptions,
): Speech {
  const chatOf = (chatId: string): ChatRef => ({ principalId: connection.principal.id, chatId })
  const prepare: Speech['prepare'] = (chatId, named) => () => {
    const agent = { named, ...readAgent(connection.exchange()) }
    return live.prepareSpeech(connection.principal, chatOf(chatId), agent)
  }
  const open = (chatId: string, speaker?: LiveSpeaker): Promise<LiveConversation | undefined> =>
    subscriptions.whileBusy(chatId, () =>
      runs.openForAudio(chatOf(chatId), prepare(chatId), speaker),
    )
  const openAsSpeaker: Speech['openAsSpeaker'] = (chatId) =>
    open(chatId, subscriptions.speakerOf(chatId))
  const hear: Speech['hear'] = async (chatId, blob) =>
    (await openAsSpeaker(chatId))?.sendMedia(blob, (words, isInReach) =>
      // WS16: a decision is authenticated again.
      live.hear(() => connection.checkPrincipal(), chatOf(chatId), { words, isInReach }),
    )
  return { prepare, open: (chatId) => open(chatId), openAsSpeaker, hear }
}

/** Checks the media type of audio. SocketPeer checks its size (WS15). */
function toAudio(data: string, mimeType: string): Blob {
  if (/^audio\/[\w.+-]+(?:;\s?[\w-]+=[\w.-]+)*$/i.test(mimeType)) return { data, mimeType }
  const message =
    'Audio needs a media type such as `audio/pcm;rate=16000`. Send images in `image` frames.'
  throw new ProtocolError('bad-request', { message })
}

/** Checks the type and size of an image, with the limits for files in messages. */
function toImage(data: string, mimeType: string, limits: BridgeLimits): Blob {
  if (!mimeType.toLowerCase().startsWith('image/')) {
    const message =
      'An image needs a media type that starts with `image/`. Send audio in `audio` frames.'
    throw new ProtocolError('bad-request', { message })
  }
  const type = checkFileType(mimeType, limits)
  checkFileSize(data, limits)
  return { data, mimeType: type }
}

/** How a client takes part in a chat. */
interface Subscription {
  readonly audio: AudioMode
  readonly watches: boolean
  /** Whether it has sent a request in the chat. */
  readonly participates: boolean
}

/** The chats whose live sessions a client takes part in. */
class ChatSubscriptions {
  readonly #connection: Connection
  readonly #runs: LiveRuns
  readonly #maxChats: number
  readonly #chats = new Map<string, Subscription & { readonly leave: () => void }>()
  /** The microphone of this client in each chat. */
  readonly #speakers = new Map<string, LiveSpeaker>()
  #left = false
  /** The chat of binary audio frames, which carry no chat id. */
  audioChatId: string | undefined

  constructor(connection: Connection, runs: LiveRuns, maxChats: number) {
    this.#connection = connection
    this.#runs = runs
    this.#maxChats = maxChats
  }

  /** Whether a live session of these chats is busy. */
  get busy(): boolean {
    return [...this.#chats.keys()].some(
      (chatId) => this.#runs.find(this.#chatOf(chatId))?.isBusy === true,
    )
  }

  /** Returns how a watched chat is heard. Undefined if it is not watched: then each request says how. */
  audioOf(chatId: string): AudioMode | undefined {
    const known = this.#chats.get(chatId)
    return known?.watches ? known.audio : undefined
  }

  /** Returns the microphone of this client in a chat. */
  speakerOf(chatId: string): LiveSpeaker {
    const { send } = this.#connection
    const speaker = this.#speakers.get(chatId) ?? {
      onTakenOver: () => send({ type: 'status', id: chatId, status: 'taken-over' }),
      hasLeft: () => this.#left,
    }
    if (!this.#left) this.#speakers.set(chatId, speaker)
    return speaker
  }

  /**
   * Subscribes to a chat while a request runs, so that its live session is kept. The subscription ends with the request if the chat has
   * no live session then.
   */
  async whileBusy<Result>(chatId: string, ask: () => Promise<Result>): Promise<Result> {
    this.#enter(chatId)
    try {
      return await ask()
    } finally {
      if (this.#isTalking(chatId)) this.#enter(chatId)
      else if (this.#chats.get(chatId)?.watches === false) this.#exit(chatId)
    }
  }

  /** Subscribes to all turns of a chat. */
  watch(chatId: string, audio: AudioMode): void {
    const known = this.#chats.get(chatId)
    known?.leave()
    this.#join(chatId, { audio, watches: true, participates: known?.participates ?? false })
    if (audio === 'binary') this.audioChatId = chatId
    else this.#stopAudio(chatId)
  }

  /** Ends `watch`. A client that has sent a request in the chat stays subscribed while its live session lasts. */
  unwatch(chatId: string): void {
    const known = this.#chats.get(chatId)
    this.#stopAudio(chatId)
    this.#exit(chatId)
    if (known?.participates && this.#isTalking(chatId)) this.#enter(chatId)
  }

  /** Sends a turn that no request of this client started. `userMessage` is the transcript of the person's speech so far. */
  show(chatId: string, turn: Turn, userMessage?: Message): void {
    const { send, read, findFormat } = this.#connection
    const requestId = `turn-${randomUUID()}`
    const transcript = userMessage && { userMessage }
    const { id, messageId } = turn
    send({ type: 'turn', id: chatId, requestId, messageId, turn: id, ...transcript })
    read(requestId, turn, {
      from: 'start',
      format: findFormat(),
      audio: this.audioOf(chatId) ?? 'base64',
    })
  }

  leave(): void {
    this.#left = true
    for (const chatId of this.#chats.keys()) this.#exit(chatId)
  }

  #enter(chatId: string): void {
    const known = this.#chats.get(chatId)
    if (known) this.#chats.set(chatId, { ...known, participates: true })
    else this.#join(chatId, { audio: 'base64', watches: false, participates: true })
  }

  #exit(chatId: string): void {
    this.#chats.get(chatId)?.leave()
    this.#chats.delete(chatId)
    const speaker = this.#speakers.get(chatId)
    if (speaker) this.#runs.endSpeech(this.#chatOf(chatId), speaker)
    this.#speakers.delete(chatId)
  }

  #isTalking(chatId: string): boolean {
    return this.#runs.isTalking(this.#chatOf(chatId))
  }

  #chatOf(chatId: string): ChatRef {
    return { principalId: this.#connection.principal.id, chatId }
  }

  /** Unsubscribes from chats without a live session. Throws if the limit is still reached. */
  #evictOldest(): void {
    if (this.#chats.size < this.#maxChats) return
    for (const [chatId, { watches }] of this.#chats)
      if (!watches && !this.#isTalking(chatId)) this.#exit(chatId)
    if (this.#chats.size >= this.#maxChats) throw new ProtocolError('too-many-live-chats')
  }

  #stopAudio(chatId: string): void {
    if (this.audioChatId === chatId) this.audioChatId = undefined
  }

  #join(chatId: string, subscription: Subscription): void {
    // The socket may close while a handler still runs.
    if (this.#left) return
    if (!this.#chats.has(chatId)) this.#evictOldest()
    // A new object each time, because watchers are compared by identity.
    const watcher = subscription.watches ? this.#watcher(chatId) : { ...SILENT }
    this.#chats.set(chatId, {
      ...subscription,
      leave: this.#runs.watch(this.#chatOf(chatId), watcher),
    })
  }

  #watcher(id: string): LiveWatcher {
    const { send } = this.#connection
    return {
      listens: true,
      onTurn: (turn, userMessage) => this.show(id, turn, userMessage),
      onUserMessage: (message) => send({ type: 'user-message', id, message }),
      onTranscript: ({ text, final }) =>
        send({ type: 'transcript', id, author: 'user', text, final }),
      onInterrupted: () => send({ type: 'interrupted', id }),
      onStatus: (status) => send({ type: 'status', id, status }),
    }
  }
}

const SILENT: LiveWatcher = {
  listens: false,
  onTurn: () => undefined,
  onUserMessage: () => undefined,
  onTranscript: () => undefined,
  onInterrupted: () => undefined,
  onStatus: () => undefined,
}
