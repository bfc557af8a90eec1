import type { StudioPlugin } from './plugin.ts'

/** The page for any agent. A build with a plug-in replaces this file: see `page-config.ts`. */
export const plugin: StudioPlugin = {}
