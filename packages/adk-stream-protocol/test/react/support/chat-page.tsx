import { render, screen, waitFor } from '@testing-library/react'
import { userEvent } from '@testing-library/user-event'
import type { ReactNode } from 'react'
import { WebSocket } from 'ws'

import { isLong } from '../../../../../test/support/long-run.ts'
import { adkApi, webSocketTransport, sseTransport } from '../../../src/client/index.ts'
import {
  type AdkChat,
  AdkProvider,
  ConnectionNotice,
  MessageList,
  ProblemCard,
  useAdkChat,
  type UseAdkChatOptions,
} from '../../../src/react/index.ts'
import type { TestBridge, Person } from '../../approvals/support/test-bridge.ts'
import { toLiveUrl } from '../../sockets/support/socket-client.ts'

export type Way = 'live' | 'sse'

export const WAYS: readonly Way[] = ['live', 'sse']

/** The transports of tests that run over each of them: both in `npm run test:long`, and one in `npm test`. */
export const testedWays: readonly Way[] = isLong ? WAYS : ['live']

interface BrowserOptions {
  /** Attempts to reconnect before requests fail. */
  readonly attempts?: number
  readonly hold?: boolean
}

/** The browser of a person with one transport, and everything that it has sent. */
export class TestBrowser implements AsyncDisposable {
  /** Frames, or the addresses of requests. */
  readonly sent: string[] = []
  readonly transport
  readonly api
  /** Another transport for the same server. */
  readonly newApi
  /** Whether new sockets and requests find no server. */
  isOffline = false
  /** Whether the next request that changes something arrives and gets no response. */
  losesResponses = false
  readonly #sockets: WebSocket[] = []
  readonly #unmounts: (() => void)[] = []

  constructor(
    { url }: Pick<TestBridge, 'url'>,
    way: Way,
    person: Person = 'hanako',
    { attempts = 50, hold = true }: BrowserOptions = {},
  ) {
    const headers = { 'x-api-key': person }
    const { sent } = this
    const sockets = this.#sockets
    const fetch: typeof globalThis.fetch = (address, init) => {
      const { pathname } = new URL(String(address))
      if (this.isOffline) return Promise.reject(new TypeError('network: offline'))
      if (!pathname.endsWith('/events')) sent.push(`${init?.method ?? 'GET'} ${pathname}`)
      if (this.losesResponses && init?.method === 'POST') {
        this.losesResponses = false
        return globalThis
          .fetch(address, init)
          .then(() => Promise.reject(new TypeError('network: lost')))
      }
      return globalThis.fetch(address, init)
    }
    const reach = (address: string): string =>
      // The discard port: connections to it are refused.
      this.isOffline ? 'ws://127.0.0.1:9' : address
    class PageSocket extends WebSocket {
      constructor(address: string, protocols?: string | string[]) {
        super(reach(address), protocols, { headers })
        sockets.push(this)
      }
    }
    this.newApi = () => adkApi({ url, headers, fetch })
    this.api = this.newApi()
    this.transport =
      way === 'sse'
        ? sseTransport({ url, headers, fetch })
        : webSocketTransport({
            url: toLiveUrl(url),
            webSocket: PageSocket,
            backoff: { firstMs: 1, maxMs: 20, attempts },
            hold,
            observe: (event) => {
              if (event.type === 'frame' && event.direction === 'out' && 'type' in event.frame)
                sent.push(String(event.frame.type))
            },
          })
  }

  /** Shows a chat as a page does. */
  show(options: Partial<UseAdkChatOptions> = {}): TestPage {
    const page = new TestPage(this, options)
    this.#unmounts.push(() => page.leave())
    return page
  }

  /** Waits until the page has requested the stored messages, which it does once after the first reply of a chat. */
  async untilLoaded(): Promise<void> {
    await waitFor(() => {
      const loads = this.sent.filter((sent) => sent.startsWith('GET /chats/'))
      if (loads.length === 0) throw new Error('The stored messages were not requested.')
    })
  }

  /** Ends the connections. The next socket works again. */
  cut(): void {
    this.#sockets.at(-1)?.terminate()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const unmount of this.#unmounts) unmount()
    if ('close' in this.transport) this.transport.close()
    await Promise.all(
      this.#sockets.map(
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

/** The rendered page and a simulated user. */
export class TestPage {
  readonly user = userEvent.setup()
  readonly errors: unknown[] = []
  readonly #browser: TestBrowser
  readonly #view
  #options: Partial<UseAdkChatOptions>
  #chat: AdkChat | undefined

  constructor(browser: TestBrowser, options: Partial<UseAdkChatOptions>) {
    this.#browser = browser
    this.#options = options
    this.#view = render(this.#page())
  }

  get chat(): AdkChat {
    if (!this.#chat) throw new Error('Nothing is shown.')
    return this.#chat
  }

  /** The text of the assistant. */
  get text(): string {
    const answers = document.querySelectorAll('[data-role="assistant"]')
    return Array.from(answers, ({ textContent }) => textContent).join('\n')
  }

  rerender(options: Partial<UseAdkChatOptions>): void {
    this.#options = { ...this.#options, ...options }
    this.#view.rerender(this.#page())
  }

  leave(): void {
    this.#view.unmount()
  }

  say(text: string): void {
    void this.chat.sendMessage({ text })
  }

  async until(text: string): Promise<void> {
    await waitFor(() => {
      if (!this.text.includes(text)) throw new Error(`"${text}" is not in "${this.text}"`)
    })
  }

  async untilReady(): Promise<void> {
    await waitFor(() => {
      if (this.chat.status !== 'ready') throw new Error(`The chat is ${this.chat.status}.`)
    })
  }

  /** Clicks the first button of this name, when there is one. */
  async click(name: string): Promise<void> {
    const [button] = await screen.findAllByRole('button', { name })
    if (button) await this.user.click(button)
  }

  #page(): ReactNode {
    const { transport } = this.#browser
    return (
      <AdkProvider>
        <ChatView
          id="chat-1"
          transport={transport}
          throttleMs={0}
          onError={(error) => this.errors.push(error)}
          onShown={(chat) => {
            this.#chat = chat
          }}
          {...this.#options}
        />
      </AdkProvider>
    )
  }
}

interface ChatViewProps extends UseAdkChatOptions {
  readonly onShown: (chat: AdkChat) => void
}

function ChatView({ onShown, ...options }: ChatViewProps) {
  const chat = useAdkChat(options)
  onShown(chat)
  const { messages, status, decide, refusals, votes, problem, recover } = chat
  const { hints, unconfirmed, isConnected, waitingDecisions, cancelDecision } = chat
  const { decideTogether } = chat
  const desk = {
    onDecide: decide,
    refusals,
    votes,
    hints,
    unconfirmed,
    isConnected,
    waitingDecisions,
  }
  return (
    <>
      <MessageList
        messages={messages}
        status={status}
        {...desk}
        onDecideTogether={decideTogether}
        onCancelDecision={cancelDecision}
      />
      <ConnectionNotice chat={chat} />
      {problem && <ProblemCard problem={problem} onRecover={() => void recover()} />}
    </>
  )
}
