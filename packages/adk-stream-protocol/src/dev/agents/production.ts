import type { Authenticate } from '../../server/auth/authenticate.ts'
import type { BridgeSettings } from '../../server/options.ts'
import type { LoadedFile } from '../load/load-agents.ts'
import { LoadError } from '../load/load-error.ts'

/** Returns the `authenticate` that a file exports. */
export function readAuthenticate({ file, exports }: LoadedFile): Authenticate {
  const found = exports['authenticate'] ?? exports['default']
  // Its result is checked for each request.
  if (typeof found === 'function') return found as Authenticate
  throw new LoadError(
    'unservable',
    `${file}: exports no authenticate. Export it: export const authenticate = (request) => ({ id: … })`,
  )
}

/** Throws a `LoadError` that names everything that a server in production needs and these settings do not have. */
export function checkProduction(
  settings: Pick<
    BridgeSettings,
    'authenticate' | 'store' | 'allowedOrigins' | 'recordModelCalls' | 'developer'
  >,
): void {
  const { authenticate, store, allowedOrigins = [], recordModelCalls = false, developer } = settings
  const missing = [
    ...(authenticate ? [] : ['--auth <file>, because every browser would be a person of its own']),
    ...(store
      ? []
      : ['--data <folder>, --database <url> or DATABASE_URL, because chats would be lost']),
    ...(allowedOrigins.length > 0 ? [] : ['--origin <url>, the origin of the page']),
  ]
  if (missing.length > 0) throw new LoadError('unservable', `serve needs ${missing.join('; ')}.`)
  if (recordModelCalls !== false)
    throw new LoadError(
      'unservable',
      'serve refuses the option recordModelCalls, which shows the instructions of the agent to people. Remove it.',
    )
  if (developer === true)
    throw new LoadError(
      'unservable',
      'serve refuses the option developer, with which people read and change the state of sessions. Remove it.',
    )
}
