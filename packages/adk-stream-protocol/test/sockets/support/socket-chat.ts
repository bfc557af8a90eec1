import { Chat } from '@ai-sdk/react-7'
import * as ai from 'ai-7'
import { WebSocket } from 'ws'

import { ApprovingChat } from '../../approvals/support/approving-chat.ts'
import type { ChatMessage } from '../../support/chat-probe.ts'
import { toLiveUrl } from './socket-client.ts'

export interface SocketPage extends AsyncDisposable {
  /** Every socket that was opened. */
  readonly sockets: WebSocket[]
  readonly open: (id?: string, messages?: readonly ChatMessage[]) => ApprovingChat
}

/** A page with the AI SDK's own `WebSocketChatTransport`, unmodified: its chats share one socket. */
export function openSocketPage(url: string, headers: Record<string, string> = {}): SocketPage {
  const sockets: WebSocket[] = []
  // Node 20 has no WebSocket of its own; a browser would send its cookies where this one sends headers.
  class PageSocket extends WebSocket {
    constructor(address: string | URL, protocols?: string | string[]) {
      super(address, protocols, { headers })
      sockets.push(this)
    }
  }
  const transport = new ai.WebSocketChatTransport<ai.UIMessage>({
    url: toLiveUrl(url),
    // `ws` is the implementation that the AI SDK names for Node.
    webSocket: PageSocket as unknown as NonNullable<
      ConstructorParameters<typeof ai.WebSocketChatTransport>[0]['webSocket']
    >,
  })
  return {
    sockets,
    open: (id = 'chat-1', messages = []) =>
      new ApprovingChat(
        new Chat({
          id,
          // Messages of the server are UI messages; tests that read them have them validated.
          messages: messages as ai.UIMessage[],
          transport,
          sendAutomaticallyWhen: ai.lastAssistantMessageIsCompleteWithApprovalResponses,
        }),
        {},
      ),
    async [Symbol.asyncDispose]() {
      transport.close()
      await Promise.all(sockets.map(gone))
    },
  }
}

function gone(socket: WebSocket): Promise<void> {
  return new Promise((resolve) => {
    if (socket.readyState === WebSocket.CLOSED) resolve()
    else socket.on('close', () => resolve())
  })
}
