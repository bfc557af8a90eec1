import { Chat as Chat6 } from '@ai-sdk/react'
import { Chat as Chat7 } from '@ai-sdk/react-7'
import * as ai6 from 'ai'
import * as ai7 from 'ai-7'

import { ChatProbe, type ChatOptions, type ChatMessage } from './chat-probe.ts'

/** A version of the AI SDK: its own chat, transport and validators, unmodified. */
export interface Client {
  readonly name: string
  readonly openChat: (options: ChatOptions) => ChatProbe
  /** Rejects if this version does not accept the messages. */
  readonly validateMessages: (messages: readonly ChatMessage[]) => Promise<unknown>
  /** Whether the stream reader of this version accepts the chunk. */
  readonly acceptsChunk: (chunk: unknown) => Promise<boolean>
}

const chunkSchema6 = ai6.asSchema(ai6.uiMessageChunkSchema)
const chunkSchema7 = ai7.asSchema(ai7.uiMessageChunkSchema)

export const clients: readonly Client[] = [
  {
    name: 'ai 6',
    openChat: ({ id, api, fetch, autoSend, messages = [] }) =>
      new ChatProbe(
        new Chat6({
          id,
          // Messages of the server are UI messages; validateMessages checks that in every test that reads them.
          messages: messages as ai6.UIMessage[],
          transport: new ai6.DefaultChatTransport({ api, fetch }),
          ...(autoSend && {
            sendAutomaticallyWhen: ai6.lastAssistantMessageIsCompleteWithToolCalls,
          }),
        }),
      ),
    validateMessages: (messages) => ai6.validateUIMessages({ messages }),
    acceptsChunk: async (chunk) => (await chunkSchema6.validate?.(chunk))?.success === true,
  },
  {
    name: 'ai 7',
    openChat: ({ id, api, fetch, autoSend, messages = [] }) =>
      new ChatProbe(
        new Chat7({
          id,
          messages: messages as ai7.UIMessage[],
          transport: new ai7.DefaultChatTransport({ api, fetch }),
          ...(autoSend && {
            sendAutomaticallyWhen: ai7.lastAssistantMessageIsCompleteWithToolCalls,
          }),
        }),
      ),
    validateMessages: (messages) => ai7.validateUIMessages({ messages }),
    acceptsChunk: async (chunk) => (await chunkSchema7.validate?.(chunk))?.success === true,
  },
]
