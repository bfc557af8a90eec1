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

import { WireLog } from '../inspector/wire-log.ts'
import type { Mode } from '../settings/mode.ts'
import { observeTransport } from './observe-transport.ts'

/** What passes between this page and its server is seen by these two. */
export const log = new WireLog()
export const recorder = new Recorder()

const observe = (event: WireEvent): void => {
  log.observe(event)
  recorder.observe(event)
}

// The server writes hints for the reader, who may have chosen another language than the browser's.
const headers = () => ({ 'accept-language': document.documentElement.lang })

export const api = adkApi({ url: '', headers })

/** One socket for the page, opened when something needs it. */
export const live = webSocketTransport({
  url: socketAddress,
  observe,
  // While a call waits for a person, they can say something else: the answer pauses there, as it does over HTTP.
  hold: false,
})

/** A way to talk for every mode; one of each for the page, whichever chat is open. */
export const transports = {
  sse: sseTransport({ url: '', headers, observe }),
  live,
  direct: observeTransport(
    new DefaultChatTransport<AdkUIMessage>({ api: '/direct', headers }),
    observe,
  ),
} satisfies Record<Mode, AnyTransport>

function socketAddress(): string {
  const { protocol, host } = window.location
  return `${protocol === 'https:' ? 'wss' : 'ws'}://${host}/live`
}
