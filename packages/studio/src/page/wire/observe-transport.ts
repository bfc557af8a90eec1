import type { AdkUIMessage, WireEvent } from 'adk-stream-protocol/client'
import type { ChatTransport } from 'ai'

import { newId } from '../new-id.ts'

type Chunk = Extract<WireEvent, { type: 'chunk' }>['chunk']
type ChunkStream = Awaited<ReturnType<ChatTransport<AdkUIMessage>['sendMessages']>>

/** Observes an AI SDK transport. It resumes nothing, because its server stores no replies. */
export function observeTransport(
  transport: ChatTransport<AdkUIMessage>,
  observe: (event: WireEvent) => void,
): ChatTransport<AdkUIMessage> {
  return {
    sendMessages: async (options) => {
      const { chatId, trigger, messageId, messages } = options
      const request = newId()
      const message = messages.at(-1)
      observe({
        type: 'request',
        request,
        chatId,
        trigger,
        ...(message && { message }),
        ...(messageId !== undefined && { messageId }),
      })
      const end = (error?: unknown): void =>
        observe({
          type: 'end',
          request,
          chatId,
          ...(error !== undefined && { error: String(error) }),
        })
      try {
        const stream = await transport.sendMessages(options)
        // The bridge's chunk types are a subset of the AI SDK's. The observer ignores unknown chunks.
        const onChunk = (chunk: unknown): void =>
          observe({ type: 'chunk', request, chatId, chunk: chunk as Chunk })
        return tap(stream, { onChunk, end })
      } catch (error) {
        end(error)
        throw error
      }
    },
    reconnectToStream: async () => null,
  }
}

interface Tap {
  readonly onChunk: (chunk: unknown) => void
  readonly end: (error?: unknown) => void
}

function tap(stream: ChunkStream, { onChunk, end }: Tap): ChunkStream {
  const reader = stream.getReader()
  return new ReadableStream({
    async pull(controller) {
      try {
        const { done, value } = await reader.read()
        if (!done) {
          onChunk(value)
          return controller.enqueue(value)
        }
        end()
        controller.close()
      } catch (error) {
        end(error)
        throw error
      }
    },
    async cancel(reason) {
      end()
      await reader.cancel(reason)
    },
  })
}
