import { ProtocolError } from '../../protocol/errors.ts'
import type { LazyBackend } from '../../server/chats/backend.ts'
import { readJson, reply } from '../../server/http/exchange.ts'
import type { Route } from '../../server/http/http-router.ts'
import type { Core } from '../module.ts'
import type { NotifyOptions } from './notice.ts'
import { toAddressKind } from './stored-addresses.ts'

/** How many addresses of a channel a person has. The oldest one makes room for another. */
const MAX_ADDRESSES = 10
/** A page adds its address again each time that it is opened. An address ends if no page has added it for 90 days. */
const KEPT_MS = 90 * 24 * 3_600_000

/** The endpoints with which people say where they want to be told. */
export function addressRoutes({ backend, limits }: Core, { channels }: NotifyOptions): Route[] {
  return Object.entries(channels).flatMap(([name, { addresses }]): Route[] => {
    if (!addresses) return []
    const kind = toAddressKind(name)
    return [
      {
        method: 'GET',
        path: `/channels/${name}/addresses`,
        handle: async ({ principal }) => {
          const { records, owner } = await open(backend, principal.id)
          const found = await records.list(owner, kind)
          const shown = found.map(({ id, at }) => ({ id, at }))
          return reply(200, { info: addresses.info, addresses: shown })
        },
      },
      {
        method: 'POST',
        path: `/channels/${name}/addresses`,
        handle: async ({ principal, exchange }) => {
          const address = addresses.read(await readJson(exchange, limits))
          if (!address) throw new ProtocolError('bad-request', { message: NO_ADDRESS })
          const { records, owner } = await open(backend, principal.id)
          const { id, value } = address
          // Another person has used this browser before, and has not removed it.
          const place = { ...owner, principalId: id }
          for (const { principalId } of await records.listAbout(place, kind))
            if (principalId !== principal.id)
              await records.remove({ ...owner, principalId }, { kind, id })
          await records.put(owner, { kind, id, about: id, body: value, forMs: KEPT_MS })
          const all = await records.list(owner, kind)
          for (const old of all.slice(0, -MAX_ADDRESSES))
            await records.remove(owner, { kind, id: old.id })
          return reply(201, { id })
        },
      },
      {
        method: 'DELETE',
        path: `/channels/${name}/addresses/:id`,
        handle: async ({ principal, id }) => {
          const { records, owner } = await open(backend, principal.id)
          return reply(200, { removed: await records.remove(owner, { kind, id }) })
        },
      },
    ]
  })
}

async function open(backend: LazyBackend, principalId: string) {
  const { store, appName } = await backend.get()
  const { personalRecords: records } = store
  // `createBridge` has refused the option otherwise.
  if (!records) throw new ProtocolError('internal')
  return { records, owner: { appName, principalId } }
}

const NO_ADDRESS =
  'This is no address of this channel. For Web Push, send the subscription of the browser.'
