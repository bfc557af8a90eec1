import { useSyncExternalStore } from 'react'
import { z } from 'zod'

import { AgentInfo, StudioInfo } from '../../studio-info.ts'
import { ObservableValue } from '../observable-value.ts'

const studioInfo = new ObservableValue<StudioInfo | undefined>(undefined)
let isRequested = false
let received = ''

/** While the server reloads the agent when a file changes, the page asks for its description at this interval. */
const POLL_MS = 1_000

/** Returns what the server says about the agents and the model, or undefined until it is loaded. */
export function useStudio(): StudioInfo | undefined {
  return useSyncExternalStore(subscribe, studioInfo.read)
}

/** Returns the same outside of a component. */
export function readStudio(): StudioInfo | undefined {
  return studioInfo.read()
}

function subscribe(listener: () => void): () => void {
  if (!isRequested) {
    isRequested = true
    void follow()
  }
  return studioInfo.subscribe(listener)
}

/** Loads the description once, or again and again if the server reloads the agent. */
async function follow(): Promise<void> {
  // If this fails, the page offers every mode and shows nothing about the model.
  await loadStudio().catch(() => undefined)
  if (studioInfo.read()?.reloads !== true) return
  setInterval(() => {
    if (!document.hidden) void loadStudio().catch(() => undefined)
  }, POLL_MS)
}

async function loadStudio(): Promise<void> {
  const text = await (await fetch('/studio')).text()
  if (text === received) return
  const { data } = StudioInfo.safeParse(JSON.parse(text))
  // While the server restarts, the page keeps what it knows.
  if (!data && received !== '') return
  received = text
  studioInfo.set(data)
  if (data?.sessions === true && !data.agents.some(({ graph }) => graph)) await loadAgents(data)
}

/** Replaces the agents by what the bridge says about them to developers, on the machine of the server. */
async function loadAgents(info: StudioInfo): Promise<void> {
  const described = Agents.safeParse(await (await fetch('/agents')).json()).data
  if (described) studioInfo.set({ ...info, ...described })
}

const Agents = z.object({ agents: z.array(AgentInfo) })
