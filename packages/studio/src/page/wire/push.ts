import { z } from 'zod'

import { observedFetch } from './wire.ts'

const WORKER = '/push-worker.js'
/** The id of the address that this browser has added. */
const ADDRESS = 'push-address'

/** Whether this browser can be told of approvals while no page is open. Browsers offer that only to pages with HTTPS, and on localhost. */
export function canPush(): boolean {
  return isSecureContext && 'serviceWorker' in navigator && 'PushManager' in window
}

/** The channel of the server that sends to browsers, and the language of what they show. */
export interface PushOptions {
  readonly channel: string
  readonly language: string
}

/** Has the server tell this browser. Call it in response to a click, because the browser may ask the person. */
export async function subscribePush({ channel, language }: PushOptions): Promise<void> {
  await navigator.serviceWorker.register(`${WORKER}?language=${language}`)
  const { pushManager } = await navigator.serviceWorker.ready
  const { info } = Channel.parse(await request('GET', channel))
  const subscription = await pushManager.subscribe({
    userVisibleOnly: true,
    applicationServerKey: info.publicKey,
  })
  const { id } = Added.parse(await request('POST', channel, { body: subscription }))
  localStorage.setItem(ADDRESS, id)
}

/** Adds the subscription of this browser again, because the server keeps one for 90 days. Returns false if there is none any more. */
export async function renewPush(options: PushOptions): Promise<boolean> {
  const registration = await navigator.serviceWorker.getRegistration(WORKER)
  if (!(await registration?.pushManager.getSubscription())) {
    await unsubscribePush(options.channel)
    return false
  }
  await subscribePush(options)
  return true
}

/** Has the server no longer tell this browser. */
export async function unsubscribePush(channel: string): Promise<void> {
  const registration = await navigator.serviceWorker.getRegistration(WORKER)
  await (await registration?.pushManager.getSubscription())?.unsubscribe()
  const id = localStorage.getItem(ADDRESS)
  if (id === null) return
  await request('DELETE', channel, { id })
  localStorage.removeItem(ADDRESS)
}

const Channel = z.object({ info: z.object({ publicKey: z.string() }) })
const Added = z.object({ id: z.string() })

/** Asks for the addresses of a channel. */
async function request(
  method: string,
  channel: string,
  { id, body }: { readonly id?: string; readonly body?: unknown } = {},
): Promise<unknown> {
  const url = `/channels/${channel}/addresses${id === undefined ? '' : `/${id}`}`
  const headers = { 'content-type': 'application/json' }
  const sent = body === undefined ? {} : { headers, body: JSON.stringify(body) }
  const response = await observedFetch(url, { method, ...sent })
  if (!response.ok) throw new Error(`${method} ${url} was answered with ${response.status}.`)
  return response.json()
}
