import { randomUUID } from 'node:crypto'

import type { Blob } from '@google/genai'

import type { LiveConversation } from '../../live/live-conversation.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import { checkFileSize, checkFileType, checkText } from '../../protocol/stream-request.ts'
import type { ChatRef } from '../../shared/chat-ref.ts'
import type { ChatService } from '../chats/chat-service.ts'
import type { LiveRuns } from '../chats/live-runs.ts'
import type { LiveSender } from '../chats/live-sender.ts'
import { readReply } from '../chats/decisions/reply-decisions.ts'
import { readAgent } from '../http/read-request.ts'
import type { BridgeLimits } from '../limits.ts'
import { ChatSubscriptions } from './chat-subscriptions.ts'
import type { Connection, FrameHandlers } from './frame-handlers.ts'
import { openTurnHandlers } from './turn-handlers.ts'

export interface LiveHandlersOptions {
  readonly runs: LiveRuns
  readonly chats: ChatService
  readonly live: LiveSender
  readonly limits: BridgeLimits
}

/** The audio format that Gemini Live accepts. */
const MICROPHONE = 'audio/pcm;rate=16000'

/** Creates the handlers of a socket with live sessions. They extend the handlers for turns by text, audio and images. */
export function openLiveHandlers(
  connection: Connection,
  { runs, chats, live, limits }: LiveHandlersOptions,
): FrameHandlers {
  const subscriptions = new ChatSubscriptions(connection, runs, limits.maxLiveChatsPerPrincipal)
  const chatOf = (chatId: string): ChatRef => ({ principalId: connection.principal.id, chatId })
  /** Sets the agent and the session state before a live session starts without a text message. */
  const prepareSpeech = (chatId: string, named?: string) => (): Promise<void> => {
    const agent = { named, ...readAgent(connection.exchange()) }
    return live.prepareSpeech(connection.principal, chatOf(chatId), agent)
  }
  const openForAudio = (chatId: string): Promise<LiveConversation | undefined> =>
    subscriptions.whileBusy(chatId, () => runs.openForAudio(chatOf(chatId), prepareSpeech(chatId)))
  const show = async (chatId: string, blob: Blob): Promise<void> =>
    (await openForAudio(chatId))?.sendMedia(blob)
  const hear = async (chatId: string, blob: Blob): Promise<void> =>
    (await openForAudio(chatId))?.sendMedia(blob, (reply, isInReach) =>
      // WS16: a decision is authenticated again.
      live.decideSpoken(() => connection.checkPrincipal(), chatOf(chatId), { reply, isInReach }),
    )
  const turns = openTurnHandlers(connection, {
    chats,
    live,
    limits,
    audioOf: (chatId) => subscriptions.audioOf(chatId),
  })
  return {
    ...turns,
    send: (frame) => subscriptions.whileBusy(frame.id, async () => turns.send(frame)),
    resume: (frame) => subscriptions.whileBusy(frame.id, async () => turns.resume(frame)),
    watch: async ({ id, audio = 'base64', agent }) => {
      subscriptions.watch(id, audio)
      try {
        await runs.join(chatOf(id), prepareSpeech(id, agent))
      } catch (error) {
        subscriptions.unwatch(id)
        throw error
      }
    },
    unwatch: ({ id }) => subscriptions.unwatch(id),
    text: async ({ id, messageId = randomUUID(), text, agent }) => {
      const message = { id: messageId, parts: [checkText(text, limits)] }
      const agentRequest = { named: agent, ...readAgent(connection.exchange()) }
      const request = { message, replaces: false, hold: true, ...agentRequest }
      // WS16: a message that may decide is authenticated again.
      const principal = readReply(message)
        ? await connection.checkPrincipal()
        : connection.principal
      subscriptions.show(
        id,
        await subscriptions.whileBusy(id, () => live.send(principal, chatOf(id), request)),
      )
    },
    audio: ({ id, data, mimeType }) => hear(id, toAudio(data, mimeType)),
    image: ({ id, data, mimeType }) => show(id, toImage(data, mimeType, limits)),
    binary: (bytes) => {
      const chatId = subscriptions.audioChatId
      if (chatId === undefined) {
        const message = 'Send `watch` with `audio: "binary"` first: a binary frame has no chat id.'
        throw new ProtocolError('bad-request', { message })
      }
      return hear(chatId, { data: Buffer.from(bytes).toString('base64'), mimeType: MICROPHONE })
    },
    'audio-end': async ({ id }) => {
      // Sent through the same queue as the audio, so that it arrives after it. Without a session there is no audio to end.
      if (runs.isTalking(chatOf(id))) (await openForAudio(id))?.endAudio()
    },
    activity: async ({ id, state }) => (await openForAudio(id))?.sendActivity(state),
    interrupt: ({ id }) => runs.find(chatOf(id))?.interrupt(),
    join: (id) => subscriptions.watch(id, 'base64'),
    busy: () => subscriptions.busy,
    close: () => {
      subscriptions.leave()
      turns.close()
    },
  }
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
