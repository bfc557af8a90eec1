import { afterAll, afterEach, beforeAll } from 'vitest'

import { TestDemo, type TestDemoOptions } from './test-demo.ts'

/** Starts the demo before the tests of a file, closes the pages after each test, and fails a test whose pages had errors. */
export function useTestDemo(options?: TestDemoOptions): TestDemo {
  const testDemo = new TestDemo(options)
  beforeAll(() => testDemo.start())
  afterEach(() => testDemo.closePages())
  afterAll(() => testDemo[Symbol.asyncDispose]())
  return testDemo
}
