import { spawn } from 'node:child_process'

/** Opens a URL in the browser of the user. Does nothing if there is none. */
export function openBrowser(url: string): void {
  const [command, ...args] = COMMANDS[process.platform] ?? ['xdg-open']
  const options = { stdio: 'ignore', detached: true, windowsHide: true } as const
  const opener = spawn(command ?? '', [...args, url], options)
  // The URL is in the terminal.
  opener.on('error', () => undefined)
  opener.unref()
}

const COMMANDS: Readonly<Partial<Record<NodeJS.Platform, readonly string[]>>> = {
  darwin: ['open'],
  win32: ['cmd', '/c', 'start', ''],
}
