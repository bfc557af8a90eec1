import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { pathToFileURL } from 'node:url'

import { z } from 'zod'

import { type AgUiPackage, agUiClient } from './ag-ui-chat.ts'
import type { ConformClient } from './conform-chat.ts'
import { type AiPackage, uiClient } from './ui-chat.ts'

export type Protocol = 'ui' | 'ag-ui'

/** The packages that are tried, if none is named. An alias is a second version: `npm install ai-7@npm:ai@7`. */
const PACKAGES = { ui: ['ai', 'ai-6', 'ai-7'], 'ag-ui': ['@ag-ui/client', '@ag-ui/client-0'] }

/** Loads the clients that are installed in a project. Throws an error that says what to install. */
export async function loadClients(
  protocol: Protocol,
  folder: string,
  named: readonly string[] = [],
): Promise<ConformClient[]> {
  const names = named.length > 0 ? named : PACKAGES[protocol]
  const require = createRequire(path.join(folder, 'package.json'))
  const loaded = new Map<string, ConformClient>()
  for (const name of names) {
    const found = find(require, name)
    if (!found) {
      if (named.length > 0) throw missing(protocol, name, folder)
      continue
    }
    const title = `${found.name} ${found.version}`
    // The packages are loaded from the user's project, so their types are not known here.
    const exports = (await import(pathToFileURL(found.file).href)) as AiPackage & AgUiPackage
    loaded.set(title, protocol === 'ui' ? toUi(title, exports) : agUiClient(title, exports))
  }
  if (loaded.size === 0) throw missing(protocol, PACKAGES[protocol][0] ?? '', folder)
  return [...loaded.values()]
}

function toUi(title: string, exports: AiPackage): ConformClient {
  if (typeof exports.lastAssistantMessageIsCompleteWithApprovalResponses !== 'function')
    throw new TypeError(`${title} has no approvals. Install ai 6 or 7: npm install -D ai@7`)
  return uiClient(title, exports)
}

function missing(protocol: Protocol, name: string, folder: string): TypeError {
  const what = protocol === 'ui' ? 'the AI SDK' : 'the client of AG-UI'
  return new TypeError(
    `conform uses ${what} of your project, and the package ${name} is not installed in ${folder}. Install it: npm install -D ${name}`,
  )
}

const Manifest = z.object({ name: z.string(), version: z.string() })

interface FoundPackage extends z.infer<typeof Manifest> {
  readonly file: string
}

function find(require: NodeJS.Require, name: string): FoundPackage | undefined {
  let file: string
  try {
    file = require.resolve(name)
  } catch {
    return undefined
  }
  for (let folder = path.dirname(file); folder !== path.dirname(folder);) {
    const manifest = readManifest(path.join(folder, 'package.json'))
    if (manifest) return { ...manifest, file }
    folder = path.dirname(folder)
  }
  return undefined
}

/** Folders inside a package may have a manifest without a name. */
function readManifest(file: string): z.infer<typeof Manifest> | undefined {
  try {
    return Manifest.safeParse(JSON.parse(readFileSync(file, 'utf8'))).data
  } catch {
    return undefined
  }
}
