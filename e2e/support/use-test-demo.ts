import { afterAll, afterEach, beforeAll } from 'vitest'

import { TestDemo, type TestDemoOptions } from './test-demo.ts'

/**
 * Starts the demo before the tests of a file, closes the pages after each test, and fails a test whose pages had errors. The model keeps
 * nothing of a test, such as a released gate, so that the test can run again after it failed.
 */
export function useTestDemo(options?: TestDemoOptions): TestDemo {
  const testDemo = new TestDemo(options)
  beforeAll(() => testDemo.start())
  afterEach(async () => {
    try {
      await testDemo.closePages()
    } finally {
      testDemo.emulator.reset()
    }
  })
  afterAll(() => testDemo[Symbol.asyncDispose]())
  return testDemo
}
