import { readFileSync } from 'node:fs'
import path from 'node:path'

import { expect, test } from 'vitest'

import { readTemplate } from '../../packages/create-adk-stream-protocol/src/templates.ts'
import { readPages, ROOT } from './support/pages.ts'

const pages = readPages()

interface Instruction {
  readonly name: string
  readonly value: string
}

/** Reads the instructions of a Dockerfile that has no continued lines. */
function readDockerfile(text: string): Instruction[] {
  return text.split('\n').flatMap((line) => {
    const [, name, value] = /^([A-Z]+) (.+)$/.exec(line) ?? []
    if (name === undefined || value === undefined) {
      if (line !== '' && !line.startsWith('#')) throw new Error(`Not an instruction: ${line}`)
      return []
    }
    return [{ name, value }]
  })
}

function valuesOf(instructions: readonly Instruction[], name: string): string[] {
  return instructions.filter((each) => each.name === name).map(({ value }) => value)
}

function findBlock(file: string, language: string): string {
  const page = pages.find((each) => each.path === file)
  return page?.blocks.find((block) => block.language === language)?.text ?? ''
}

test('[DO1146] the Dockerfile of the demo runs the command of `npm start`, which ends on signals', () => {
  const instructions = readDockerfile(readFileSync(path.join(ROOT, 'Dockerfile'), 'utf8'))
  const [command = ''] = valuesOf(instructions, 'CMD')
  const { scripts } = JSON.parse(readFileSync(path.join(ROOT, 'package.json'), 'utf8')) as {
    scripts: Record<string, string>
  }
  expect(`exec ${(JSON.parse(command) as string[]).join(' ')}`).toBe(scripts['start'])
  expect(valuesOf(instructions, 'RUN')).toContain('npm ci')
  expect(valuesOf(instructions, 'USER')).toEqual(['node'])
  // The start builds nothing as another user: the sources that the page was built from are the same.
  const ignored = readFileSync(path.join(ROOT, '.dockerignore'), 'utf8').split('\n')
  expect(ignored).toContain('**/dist')
})

test('[DO1146] the Dockerfile of the recipe copies the files of a quick start, runs its server, and probes its paths', () => {
  const instructions = readDockerfile(findBlock('docs/recipes/containers.md', 'dockerfile'))
  const files = readTemplate('node', 'chat')
  const copied = valuesOf(instructions, 'COPY').flatMap((value) => value.split(' ').slice(0, -1))
  const written = new Set([...files.map((each) => each.file), 'package-lock.json'])
  expect(copied.filter((file) => !written.has(file))).toEqual([])
  const [command = ''] = valuesOf(instructions, 'CMD')
  const [program, file = ''] = JSON.parse(command) as string[]
  expect(program).toBe('node')
  expect(copied).toContain(file)
  const server = files.find((each) => each.file === file)?.text ?? ''
  expect(server).toContain('closeOnSignals(server)')
  for (const [, imported = ''] of server.matchAll(/from '\.\/(.+)'/g))
    expect(copied).toContain(imported)
  const [port] = valuesOf(instructions, 'EXPOSE')
  expect(server).toContain(`listen(${port}`)
  expect(valuesOf(instructions, 'HEALTHCHECK')[0]).toContain(`127.0.0.1:${port}/adk/health`)
})
