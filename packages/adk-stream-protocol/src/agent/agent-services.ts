import type {
  BaseArtifactService,
  BaseCredentialService,
  BaseMemoryService,
  BasePlugin,
} from '@google/adk'
import type { Runner } from '@google/adk'
import * as z from 'zod'

import { isObject } from '../protocol/guards.ts'
import { withoutUndefined } from '../shared/collections.ts'

/** ADK services that the bridge passes to ADK's `Runner`. */
export interface AgentServices {
  /** ADK plugins. They run after the plugin that handles approvals. */
  readonly plugins?: readonly BasePlugin[]
  /** Stores artifacts. Clients read them with `GET /chats/:chatId/artifacts/:name`. */
  readonly artifactService?: BaseArtifactService
  /** Stores the memory of agents. */
  readonly memoryService?: BaseMemoryService
  /** Stores the credentials of tools. */
  readonly credentialService?: BaseCredentialService
}

const Service = z.custom(isObject, { error: 'an object' })

export const AgentServicesSchema = {
  plugins: z.array(Service, { error: 'a list of plugins' }).optional(),
  artifactService: Service.optional(),
  memoryService: Service.optional(),
  credentialService: Service.optional(),
} satisfies Record<keyof AgentServices, z.ZodType>

/** Separates the services from other options. */
export function splitServices<Options extends AgentServices>(
  options: Options,
): [services: AgentServices, others: Omit<Options, keyof AgentServices>] {
  const { plugins, artifactService, memoryService, credentialService, ...others } = options
  return [withoutUndefined({ plugins, artifactService, memoryService, credentialService }), others]
}

/** Returns the services of a run that a run inside it also uses. Artifacts are passed on in another way. */
export function inheritServices({
  memoryService,
  credentialService,
}: Partial<Pick<Runner, 'memoryService' | 'credentialService'>>): Pick<
  AgentServices,
  'memoryService' | 'credentialService'
> {
  return withoutUndefined({ memoryService, credentialService })
}
