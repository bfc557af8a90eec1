import type { ChatTransport, UIMessage, UIMessageChunk } from 'ai-7'

import type { BidiClient } from '../../bidi/support/bidi-client.ts'

/**
 * The chat transport of the earlier system. One handler passes every frame of the socket to the stream of the last message
 * that was sent. After an approval request, the end of the step closes that stream. Frames before the next message are lost.
 */
export class EarlierTransport implements ChatTransport<UIMessage> {
  /** The types of chunks that arrived while no stream was open. The earlier client logged an error for each. */
  readonly lost: string[] = []
  readonly #client: BidiClient
  #controller: ReadableStreamDefaultController<UIMessageChunk> | undefined
  #asked = false

  constructor(client: BidiClient) {
    this.#client = client
    client.socket.on('message', (data: Buffer) => this.#take(data.toString()))
    client.socket.on('close', () => this.#close())
  }

  async sendMessages({
    chatId,
    messages,
  }: Parameters<ChatTransport<UIMessage>['sendMessages']>[0]): Promise<
    ReadableStream<UIMessageChunk>
  > {
    return new ReadableStream({
      start: (controller) => {
        this.#controller = controller
        this.#asked = false
        this.#client.send({ type: 'message', version: '1.0', id: chatId, messages })
      },
    })
  }

  async reconnectToStream(): Promise<null> {
    return null
  }

  #take(frame: string): void {
    // A pong does not begin like this.
    if (!frame.startsWith('data: ')) return
    const json = frame.slice('data: '.length).trim()
    if (json === '[DONE]') return this.#close()
    // The server's chunks are those of the AI SDK (CH1).
    const chunk = JSON.parse(json) as UIMessageChunk
    // Audio is played, and is not part of the stream.
    if (chunk.type === 'data-pcm') return
    if (!this.#controller) {
      this.lost.push(chunk.type)
      return
    }
    this.#controller.enqueue(chunk)
    this.#asked ||= chunk.type === 'tool-approval-request'
    if (this.#asked && chunk.type === 'finish-step') this.#close()
  }

  #close(): void {
    this.#controller?.close()
    this.#controller = undefined
  }
}
