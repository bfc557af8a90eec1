import { Chat as Chat6 } from '@ai-sdk/react'
import { Chat as Chat7 } from '@ai-sdk/react-7'
import { WebSocket } from 'ws'

import type {
  AdkUIMessage,
  LoadedChat,
  AttachedChat,
  WebSocketTransport,
  WebSocketTransportOptions,
  SseTransport,
} from '../../../src/client/index.ts'
import { attachChat, webSocketTransport, sseTransport } from '../../../src/client/index.ts'
import { ApprovingChat } from '../../approvals/support/approving-chat.ts'
import { toLiveUrl } from '../../sockets/support/socket-client.ts'
import type { AnyTransport } from '../../../src/client/recording/recording.ts'
import type { AttachableChat } from '../../../src/client/sync/attachable-chat.ts'

/** The `Chat` of a version of the AI SDK. */
export interface Version {
  readonly name: string
  readonly open: (options: {
    id: string
    messages: AdkUIMessage[]
    transport: AnyTransport
  }) => ConstructorParameters<typeof ApprovingChat>[0] & AttachableChat
}

export const versions: readonly [Version, Version] = [
  { name: 'ai 6', open: (options) => new Chat6(options) },
  { name: 'ai 7', open: (options) => new Chat7(options) },
]

/** A chat of the client library, with the errors that it has reported. */
export class ClientChat extends ApprovingChat {
  readonly attached: AttachedChat
  readonly errors: unknown[]

  constructor(
    chat: ConstructorParameters<typeof ApprovingChat>[0],
    attached: AttachedChat,
    errors: unknown[],
  ) {
    super(chat, {})
    this.attached = attached
    this.errors = errors
  }

  /** Waits until this many approvals are shown, and returns their ids. */
  async untilAsked(count = 1): Promise<string[]> {
    await this.until(() => this.asked.length === count)
    return this.asked
  }
}

interface PageOptions {
  readonly url: string
  readonly version: Version
  readonly key?: string
  readonly live?: Partial<WebSocketTransportOptions>
}

/** A page with the client library in it. */
export class ClientPage implements AsyncDisposable {
  readonly transport: WebSocketTransport
  readonly sockets: WebSocket[] = []
  /** Frames that were sent. */
  readonly sent: { readonly type: string; readonly [key: string]: unknown }[] = []
  readonly #options: PageOptions

  constructor(options: PageOptions) {
    this.#options = options
    const { sockets, sent } = this
    const headers = { 'x-api-key': options.key ?? 'hanako' }
    class PageSocket extends WebSocket {
      constructor(address: string, protocols?: string | string[]) {
        super(address, protocols, { headers })
        sockets.push(this)
      }
    }
    this.transport = webSocketTransport({
      url: () => toLiveUrl(options.url),
      webSocket: PageSocket,
      backoff: { firstMs: 1, maxMs: 20, attempts: 50 },
      ...options.live,
      observe: (event) => {
        if (event.type === 'frame' && event.direction === 'out')
          sent.push(event.frame as (typeof sent)[number])
        options.live?.observe?.(event)
      },
    })
  }

  /** Opens a chat as a page does: with the stored messages. */
  async open(id = 'chat-1', { reloads = true }: { reloads?: boolean } = {}): Promise<ClientChat> {
    const { transport } = this
    const loadChat = (): Promise<LoadedChat> => this.sse().loadChat(id)
    return openAttached(this.#options.version, { id, transport, loadChat, reloads })
  }

  /** Opens a chat that is not attached. */
  openBare(id = 'chat-1'): ApprovingChat {
    const { transport } = this
    return new ApprovingChat(this.#options.version.open({ id, messages: [], transport }), {})
  }

  load(id: string): Promise<AdkUIMessage[]> {
    return this.sse().loadMessages(id)
  }

  sse(): SseTransport {
    const { url, key = 'hanako' } = this.#options
    return sseTransport({ url, headers: () => ({ 'x-api-key': key }) })
  }

  /** The types of the frames that were sent. */
  get types(): string[] {
    return this.sent.map(({ type }) => type)
  }

  /** Ends the connections. The next socket works again. */
  cut(): void {
    this.sockets.at(-1)?.terminate()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.transport.close()
    await Promise.all(
      this.sockets.map(
        (socket) =>
          new Promise<void>((resolve) => {
            if (socket.readyState === WebSocket.CLOSED) resolve()
            else socket.on('close', () => resolve())
            socket.terminate()
          }),
      ),
    )
  }
}

/** A chat over HTTP. */
export async function openSse(
  transport: SseTransport,
  version: Version,
  id = 'chat-1',
): Promise<ClientChat> {
  const loadChat = (): Promise<LoadedChat> => transport.loadChat(id)
  return openAttached(version, { id, transport, loadChat, reloads: true })
}

interface AttachedOptions {
  readonly id: string
  readonly transport: AnyTransport & Parameters<typeof attachChat>[1]
  readonly loadChat: () => Promise<LoadedChat>
  /** Whether the attached chat may load its messages again. */
  readonly reloads: boolean
}

async function openAttached(
  version: Version,
  { id, transport, loadChat, reloads }: AttachedOptions,
): Promise<ClientChat> {
  const { messages } = await loadChat()
  const chat = version.open({ id, messages, transport })
  const errors: unknown[] = []
  const attached = attachChat(chat, transport, {
    onError: (error) => errors.push(error),
    ...(reloads && { loadChat }),
  })
  return new ClientChat(chat, attached, errors)
}
