import { createContext, use } from 'react'

import type { StudioPlugin } from './plugin.ts'

/** The plug-in of the page. */
export const PluginContext = createContext<StudioPlugin>({})

export function usePlugin(): StudioPlugin {
  return use(PluginContext)
}
