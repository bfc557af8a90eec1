import {
  adkApi,
  type AdkUIMessage,
  type AnyTransport,
  webSocketTransport,
  Recorder,
  sseTransport,
  type WireEvent,
} from 'adk-stream-protocol/client'
import { DefaultChatTransport } from 'ai'

import { type Via, WireLog } from '../inspector/wire-log.ts'
import type { Mode } from '../settings/mode.ts'
import { observedFetch } from './instance.ts'
import { observeTransport } from './observe-transport.ts'

/** Both observe the traffic between the page and the server. */
export const log = new WireLog()
export const recorder = new Recorder()

const observeVia =
  (via: Via) =>
  (event: WireEvent): void => {
    log.observe(event, via)
    recorder.observe(event)
  }
const observe = observeVia('http')

// The server writes hints in this language. The person may have chosen another one than the browser's.
const headers = () => ({ 'accept-language': document.documentElement.lang })

/** Requests that change something are lines of the log too: decisions, votes, new titles. The lists that the page reads are not. */
const loggedFetch: typeof fetch = async (input, init) => {
  const { pathname } = new URL(input instanceof Request ? input.url : input, location.href)
  const { method = 'GET', body } = init ?? {}
  if (method === 'GET') return observedFetch(input, init)
  const respond = log.observeCall({
    method,
    path: pathname,
    ...(typeof body === 'string' && { body: JSON.parse(body) as unknown }),
  })
  const response = await observedFetch(input, init)
  respond(response.status)
  return response
}

export const api = adkApi({ url: '', headers, fetch: loggedFetch })

/** The socket of the page. It opens on first use. */
export const live = webSocketTransport({
  url: socketUrl,
  observe: observeVia('socket'),
  // The reply ends at a pending approval, as it does over HTTP, so the person can send another message meanwhile.
  hold: false,
})

/** One transport per mode, shared by all chats of the page. */
export const transports = {
  sse: sseTransport({ url: '', headers, observe, fetch: observedFetch }),
  live,
  direct: observeTransport(
    new DefaultChatTransport<AdkUIMessage>({ api: '/direct', headers }),
    observe,
  ),
} satisfies Record<Mode, AnyTransport>

function socketUrl(): string {
  const { protocol, host } = window.location
  return `${protocol === 'https:' ? 'wss' : 'ws'}://${host}/live`
}
