import type { ChatTransport, UIMessage, UIMessageChunk } from 'ai-7'

import type { BidiClient } from '../../bidi/support/bidi-client.ts'

/** The chat transport of seed 004: after a question it takes the end of the step for the end of its stream; the socket stays open. */
export class SeedTransport implements ChatTransport<UIMessage> {
  readonly #client: BidiClient
  /** How many of the frames were read. */
  #read = 0

  constructor(client: BidiClient) {
    this.#client = client
  }

  async sendMessages({
    chatId,
    messages,
  }: Parameters<ChatTransport<UIMessage>['sendMessages']>[0]): Promise<
    ReadableStream<UIMessageChunk>
  > {
    this.#client.send({ type: 'message', version: '1.0', id: chatId, messages })
    return new ReadableStream({ start: (controller) => void this.#pump(controller) })
  }

  async reconnectToStream(): Promise<null> {
    return null
  }

  async #pump(controller: ReadableStreamDefaultController<UIMessageChunk>): Promise<void> {
    let asked = false
    for (;;) {
      await this.#client.until(({ chunks }) => chunks.length > this.#read)
      const chunk = this.#client.chunks[this.#read]
      this.#read += 1
      if (!chunk || chunk.type === '[DONE]') break
      // The server's chunks are those of the AI SDK (CH1).
      controller.enqueue(chunk as unknown as UIMessageChunk)
      asked ||= chunk.type === 'tool-approval-request'
      if (asked && chunk.type === 'finish-step') break
    }
    controller.close()
  }
}
