import type { Authenticate, Principal } from '../../server/auth/authenticate.ts'
import type { Bridge } from '../../server/bridge.ts'
import type { AgentDescription } from '../../server/bridge-modules.ts'
import type { BridgeSettings } from '../../server/options.ts'
import type { ConnectionListeners } from './connection-server.ts'
import type { Person } from './dev-messages.ts'
import { LoadError } from '../load/load-error.ts'
import type { Problem } from '../load/problem.ts'

/** What the page shows about the agents. */
interface PageDescription {
  readonly agents: readonly (Pick<AgentDescription, 'name' | 'description'> &
    Partial<AgentDescription>)[]
  readonly modes: readonly string[]
  readonly model: string
  readonly liveModel?: string | undefined
  readonly emulated: boolean
  readonly signIn: boolean
  readonly prices?: Prices
  readonly inspector?: boolean
  /** Whether the page asks again and again, because the agent is loaded again when a file changes. */
  readonly reloads?: boolean
  readonly person?: Person | undefined
  readonly people?: readonly Person[]
  readonly problem?: Problem | undefined
}

/** The prices of models in US dollars per million tokens. */
type Prices = Readonly<Record<string, { readonly input: number; readonly output: number }>>

/** Options of the server of the page. */
export interface StudioListenerOptions {
  readonly bridge: Bridge
  readonly info: (reader: { readonly principal: Principal | undefined }) => PageDescription
  readonly authenticate?: Authenticate | undefined
  readonly allowedHosts?: NonNullable<BridgeSettings['allowedHosts']>
}

/** The part of the package with the page that commands use. This package does not depend on it. */
interface Studio {
  readonly ModelPrices: {
    readonly safeParse: (text: string) => {
      readonly data?: Prices | undefined
      readonly error?: { readonly issues: readonly { readonly message: string }[] } | undefined
    }
  }
  readonly createStudioListener: (options: StudioListenerOptions) => ConnectionListeners
}

/** Imports the package with the page. */
export async function importStudio(url: string): Promise<Studio> {
  // Its own tests check that it fits.
  return (await import(url)) as Studio
}

/** Returns the prices of models that the environment has. Throws a `LoadError` if they cannot be read. */
export function readPrices({ ModelPrices }: Studio, env: NodeJS.ProcessEnv): Prices {
  const text = env['MODEL_PRICES'] ?? ''
  if (text.trim() === '') return {}
  const { data, error } = ModelPrices.safeParse(text)
  if (data) return data
  throw new LoadError('unservable', `MODEL_PRICES ${error?.issues[0]?.message ?? 'is wrong.'}`)
}
