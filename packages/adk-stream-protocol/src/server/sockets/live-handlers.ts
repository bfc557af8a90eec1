import { randomUUID } from 'node:crypto'

import type { Blob } from '@google/genai'

import { ProtocolError } from '../../protocol/errors.ts'
import { checkFileSize, checkFileType, checkText } from '../../protocol/stream-request.ts'
import type { LiveRun } from '../../live/live-run.ts'
import type { ChatKey } from '../../turns/turns.ts'
import { readAgent } from '../http/read-request.ts'
import type { Connection, FrameHandlers } from './frame-handlers.ts'
import type { LiveRuns } from '../chats/live-runs.ts'
import type { LiveChatService } from '../chats/live-chat-service.ts'
import type { BridgeLimits } from '../options.ts'
import { ChatSubscriptions } from './chat-subscriptions.ts'
import { openTurnHandlers } from './turn-handlers.ts'

export interface LiveHandlersOptions {
  readonly runs: LiveRuns
  readonly chats: LiveChatService
  readonly limits: BridgeLimits
}

/** What Gemini Live hears. */
const MICROPHONE = 'audio/pcm;rate=16000'

/** Answers a socket from live conversations: a request is answered as turn by turn, and what is said and heard goes its way. */
export function openLiveHandlers(
  connection: Connection,
  { runs, chats, limits }: LiveHandlersOptions,
): FrameHandlers {
  const subscriptions = new ChatSubscriptions(connection, runs, limits.maxLiveChatsPerPrincipal)
  const chatOf = (chatId: string): ChatKey => ({ principalId: connection.principal.id, chatId })
  /** Chooses the agent and tells it who speaks, before a conversation begins in which nothing was written. */
  const prepareSpeech = (chatId: string, named?: string) => (): Promise<void> => {
    const agent = { named, ...readAgent(connection.exchange()) }
    return chats.prepareSpeech(connection.principal, chatOf(chatId), agent)
  }
  const openForAudio = (chatId: string): Promise<LiveRun> =>
    subscriptions.whileBusy(chatId, () => runs.openForSound(chatOf(chatId), prepareSpeech(chatId)))
  const show = async (chatId: string, blob: Blob): Promise<void> =>
    (await openForAudio(chatId)).show(blob)
  const turns = openTurnHandlers(connection, {
    chats,
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
        await runs.open(chatOf(id), prepareSpeech(id, agent))
      } catch (error) {
        subscriptions.unwatch(id)
        throw error
      }
    },
    unwatch: ({ id }) => subscriptions.unwatch(id),
    text: async ({ id, messageId = randomUUID(), text, agent }) => {
      const message = { id: messageId, parts: [checkText(text, limits)] }
      const asked = { named: agent, ...readAgent(connection.exchange()) }
      const said = { message, replaces: false, hold: true, ...asked }
      subscriptions.show(
        id,
        await subscriptions.whileBusy(id, () =>
          chats.sendLive(connection.principal, chatOf(id), said),
        ),
      )
    },
    audio: ({ id, data, mimeType }) => show(id, toAudio(data, mimeType)),
    image: ({ id, data, mimeType }) => show(id, toImage(data, mimeType, limits)),
    binary: (bytes) => {
      const chatId = subscriptions.audioChatId
      if (chatId === undefined) {
        const message = 'Send `watch` with `audio: "binary"` first: a binary frame names no chat.'
        throw new ProtocolError('bad-request', { message })
      }
      return show(chatId, { data: Buffer.from(bytes).toString('base64'), mimeType: MICROPHONE })
    },
    'audio-end': async ({ id }) => {
      // By the way that the sound went, and so after it. Where nobody was heard, there is nothing to end.
      if (runs.isTalking(chatOf(id))) (await openForAudio(id)).endAudio()
    },
    activity: async ({ id, state }) => (await openForAudio(id)).mark(state),
    interrupt: ({ id }) => runs.find(chatOf(id))?.interrupt(),
    join: (id) => subscriptions.watch(id, 'base64'),
    busy: () => subscriptions.busy,
    close: () => {
      subscriptions.leave()
      turns.close()
    },
  }
}

/** Sound has limits of its own (WS15), and a type that is a sound's. */
function toAudio(data: string, mimeType: string): Blob {
  if (/^audio\/[\w.+-]+(?:;\s?[\w-]+=[\w.-]+)*$/i.test(mimeType)) return { data, mimeType }
  const message = 'Sound has a type like `audio/pcm;rate=16000`. Send pictures as `image`.'
  throw new ProtocolError('bad-request', { message })
}

/** A picture is a file, as in a message: of an accepted type, and not too large. */
function toImage(data: string, mimeType: string, limits: BridgeLimits): Blob {
  if (!mimeType.toLowerCase().startsWith('image/')) {
    const message = 'A picture has a type that begins with `image/`. Send sound as `audio`.'
    throw new ProtocolError('bad-request', { message })
  }
  const type = checkFileType(mimeType, limits)
  checkFileSize(data, limits)
  return { data, mimeType: type }
}
